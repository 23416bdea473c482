"""Evaluates a header for one call: what is left is a flat launch plan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from llmkernel.candidate.arguments import ArrayArgument
from llmkernel.candidate.binding import (
    GUARANTEED_ALIGNMENT,
    Binding,
    Scalar,
    array_facts,
    check_requirement,
    convert_scalar,
    evaluate_shape,
)
from llmkernel.candidate.cxx_types import dtype_of, substitute
from llmkernel.candidate.expressions import Expression, Fact
from llmkernel.candidate.limits import check_limits, launch_error
from llmkernel.candidate.parameters import KernelDeclaration
from llmkernel.candidate.resolution import find_kernel, name_expression, template_mapping, template_texts
from llmkernel.candidate.statements import (
    ArrayUse,
    Launch,
    LaunchArgument,
    LaunchHeader,
    Let,
    NumberUse,
    Repeat,
    Require,
    ScalarUse,
    Scratch,
    Statement,
    Swap,
    TensorMapUse,
    When,
)
from llmkernel.candidate.tensor_maps import array_reason, box_reason
from llmkernel.devices.base import DeviceLimits
from llmkernel.devices.plan import (
    Argument,
    Buffer,
    KernelLaunch,
    LaunchPlan,
    PointerArgument,
    ScalarArgument,
    TensorMapArgument,
)
from llmkernel.problem.dtypes import DTYPES
from llmkernel.problem.signature import ArraySpec

MAX_LAUNCHES = 100_000
MAX_REPETITIONS = 100_000


def make_plan(
    header: LaunchHeader,
    kernels: Sequence[KernelDeclaration],
    facts: frozenset[Fact],
    binding: Binding,
    limits: DeviceLimits,
) -> LaunchPlan:
    """Evaluate every statement of `header`.

    Raises
    ------
    llmkernel.errors.LaunchError
        For what the device does not allow and for values that do not fit a parameter.
    llmkernel.errors.PreconditionError
        For a `require` that does not hold.
    llmkernel.errors.HeaderError
        For an expression that overflows.
    """
    return _Planner(header, kernels, facts, binding, limits).plan()


class _Planner:
    def __init__(
        self,
        header: LaunchHeader,
        kernels: Sequence[KernelDeclaration],
        facts: frozenset[Fact],
        binding: Binding,
        limits: DeviceLimits,
    ) -> None:
        self.header = header
        self.kernels = kernels
        self.facts = facts
        self.binding = binding
        self.limits = limits
        self.environment: dict[str, int | bool] = {
            **binding.environment,
            "num_sms": limits.num_sms,
            "max_shared_bytes": limits.max_shared_bytes,
        }
        # Where the device has no TMA, a header's portable branch is taken.
        self.tma_facts = () if limits.supports_tma else tuple(f.key for f in facts if f.kind == "tma_ok")
        self.environment.update(dict.fromkeys(self.tma_facts, False))
        self.arrays: dict[str, ArrayArgument] = dict(binding.arrays)
        self.buffers: list[Buffer] = []
        self.bound: dict[str, str] = {}
        self.launches: list[KernelLaunch] = []
        self.repetitions = 0
        # Parameter dtypes of a kernel instance do not change inside a repeat.
        self.parameters: dict[str, tuple[str | None, ...]] = {}

    def plan(self) -> LaunchPlan:
        signature = self.header.signature
        for spec in signature.inputs:
            if isinstance(spec, ArraySpec):
                array = self.arrays[spec.name]
                strides = array.strides if spec.is_strided else None
                self.add(spec, "inout" if spec.is_inout else "input", array.shape, strides)
        for spec in signature.outputs:
            self.add(spec, "output", self.arrays[spec.name].shape)
        self.run(self.header.statements)
        results = tuple(self.bound[o.name] for o in signature.outputs)
        return LaunchPlan(tuple(self.buffers), tuple(self.launches), results)

    def add(
        self, spec: ArraySpec, role: str, shape: tuple[int, ...], strides: tuple[int, ...] | None = None
    ) -> None:
        assert role in ("input", "inout", "output", "scratch")
        dtype = self.binding.dtype(spec.dtype)
        self.buffers.append(Buffer(spec.name, dtype, shape, role, spec.is_zeroed, strides))  # type: ignore[arg-type]
        self.bound[spec.name] = spec.name

    def run(self, statements: Sequence[Statement]) -> None:
        for statement in statements:
            if isinstance(statement, Launch):
                self.launch(statement)
            elif isinstance(statement, Let):
                self.environment[statement.name] = statement.value.evaluate(self.environment)
            elif isinstance(statement, Require):
                check_requirement(statement, self.environment)
            elif isinstance(statement, Scratch):
                self.scratch(statement)
            elif isinstance(statement, When):
                self.when(statement)
            elif isinstance(statement, Repeat):
                self.repeat(statement)
            else:
                self.swap(statement)

    def scratch(self, statement: Scratch) -> None:
        for spec in statement.arrays:
            shape = evaluate_shape(spec, self.environment)
            array = ArrayArgument(self.binding.dtype(spec.dtype), shape, None, GUARANTEED_ALIGNMENT)
            self.arrays[spec.name] = array
            self.environment |= array_facts(spec.name, array, self.facts)
            self.environment.update(dict.fromkeys(self.tma_facts, False))
            self.add(spec, "scratch", shape)

    def when(self, statement: When) -> None:
        for branch in statement.branches:
            if branch.condition.evaluate(self.environment):
                self.run(branch.body)
                return
        self.run(statement.otherwise)

    def repeat(self, statement: Repeat) -> None:
        count = statement.count.evaluate(self.environment)
        if count < 0:
            launch_error(
                "A block cannot be repeated a negative number of times.",
                statement.line,
                "`repeat` takes 0 or more",
                f"{statement.count} = {count}",
            )
        outer = self.environment.get("repeat_index")
        for index in range(count):
            self.repetitions += 1
            if self.repetitions > MAX_REPETITIONS:
                launch_error(
                    "The header repeats too often.",
                    statement.line,
                    f"a call unrolls at most {MAX_REPETITIONS} repetitions",
                    f"{statement.count} = {count}",
                )
            self.environment["repeat_index"] = index
            self.run(statement.body)
        if outer is not None:
            self.environment["repeat_index"] = outer

    def swap(self, statement: Swap) -> None:
        a, b = statement.first, statement.second
        self.bound[a], self.bound[b] = self.bound[b], self.bound[a]

    def launch(self, launch: Launch) -> None:
        grid = self.sizes(launch.grid, launch, "grid")
        if 0 in grid:
            return
        if len(self.launches) >= MAX_LAUNCHES:
            launch_error(
                "The header launches too often.",
                launch.line,
                f"a call makes at most {MAX_LAUNCHES} launches",
                str(launch.kernel),
            )
        kernel = find_kernel(launch, self.kernels)
        texts = template_texts(
            launch.template_arguments, kernel.template_parameters, self.binding.types, self.environment
        )
        name = name_expression(kernel, texts)
        block = self.sizes(launch.block, launch, "block")
        cluster = None if launch.cluster is None else self.sizes(launch.cluster, launch, "cluster")
        shared = 0 if launch.shared is None else int(launch.shared.evaluate(self.environment))
        if name not in self.parameters:
            mapping = template_mapping(kernel, texts)
            self.parameters[name] = tuple(dtype_of(substitute(p.base, mapping)) for p in kernel.parameters)
        arguments = tuple(
            self.argument(a, dtype, launch, kernel.parameters[i].name)
            for i, (a, dtype) in enumerate(zip(launch.arguments, self.parameters[name], strict=True))
        )
        result = KernelLaunch(
            name, grid, block, shared, cluster, launch.is_cooperative, arguments, launch.line
        )
        check_limits(result, kernel, self.limits)
        self.launches.append(result)

    def sizes(self, values: Sequence[Expression], launch: Launch, what: str) -> tuple[int, int, int]:
        numbers = [int(v.evaluate(self.environment)) for v in values]
        for axis, number in zip("xyz", numbers, strict=False):
            if number < 0:
                launch_error(
                    f"{what}.{axis} of `{launch.kernel}` is negative.",
                    launch.line,
                    "sizes are positive; a grid may be 0 and is then skipped",
                    f"{values['xyz'.index(axis)]} = {number}",
                )
        x, y, z = (*numbers, 1, 1)[:3]
        return (x, y, z)

    def argument(
        self, argument: LaunchArgument, dtype: str | None, launch: Launch, parameter: str
    ) -> Argument:
        if isinstance(argument, ArrayUse):
            return PointerArgument(self.bound[argument.name], self.offset(argument, launch))
        if isinstance(argument, TensorMapUse):
            return self.tensor_map(argument, launch)
        value: Scalar
        if isinstance(argument, ScalarUse):
            value = self.binding.scalars[argument.name]
        elif isinstance(argument, NumberUse):
            value = argument.value
        else:
            value = argument.evaluate(self.environment)
        assert dtype is not None, "checked by header_check"
        if isinstance(value, bool) and dtype != "bool":
            value = int(value)
        converted = convert_scalar(value, dtype)
        if converted is None:
            self.refuse_value(argument, value, dtype, launch, parameter)
        return ScalarArgument(dtype, converted)

    def refuse_value(
        self, argument: LaunchArgument, value: Scalar, dtype: str, launch: Launch, parameter: str
    ) -> NoReturn:
        launch_error(
            f"`{argument}` = {value} does not fit the parameter `{parameter}` of `{launch.kernel}`.",
            launch.line,
            f"the kernel declares it `{DTYPES[dtype].cxx[0]}`; values are never truncated",
            f"{argument} = {value}",
            "Declare the parameter wider, such as `long long`.",
        )

    def offset(self, argument: ArrayUse, launch: Launch) -> int:
        if argument.offset is None:
            return 0
        offset = int(argument.offset.evaluate(self.environment))
        array = self.arrays[argument.name]
        size = 1
        for n in array.shape:
            size *= n
        if array.strides is None and not 0 <= offset <= size:
            launch_error(
                f"`{argument}` lies outside `{argument.name}`.",
                launch.line,
                f"`{argument.name}` has {size} elements",
                f"offset {argument.offset} = {offset}",
            )
        return offset

    def tensor_map(self, argument: TensorMapUse, launch: Launch) -> TensorMapArgument:
        array = self.arrays[argument.name]
        box = tuple(int(b.evaluate(self.environment)) for b in argument.box)
        reason = None
        if not self.limits.supports_tma:
            reason = f"{self.limits.name} ({self.limits.arch}) has no TMA"
        reason = (
            reason or array_reason(array) or box_reason(box, argument.swizzle, DTYPES[array.dtype].itemsize)
        )
        if reason:
            launch_error(
                f"`{argument}` cannot be encoded: {reason}.",
                launch.line,
                "tensor maps follow cuTensorMapEncodeTiled",
                f"{array.dtype} {array.shape}, box {box}, swizzle {argument.swizzle}",
                f"Take this branch only `when tma_ok({argument.name})`.",
            )
        return TensorMapArgument(self.bound[argument.name], box, argument.swizzle)
