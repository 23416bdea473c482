"""Checks the launches of a header against the kernels' own parameter lists, before anything is compiled."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice, product
from typing import NoReturn

from llmkernel.candidate.binding import sizeof
from llmkernel.candidate.cxx_types import accepts_pointer, dtype_of, is_tensor_map, substitute
from llmkernel.candidate.expressions import expression_is_known, located
from llmkernel.candidate.parameters import KernelDeclaration, KernelParameter
from llmkernel.candidate.resolution import find_kernel, template_mapping
from llmkernel.candidate.statements import (
    ArrayUse,
    CxxArgument,
    Launch,
    LaunchArgument,
    LaunchHeader,
    NumberUse,
    Repeat,
    ScalarUse,
    Scratch,
    Statement,
    TensorMapUse,
    When,
    expressions,
)
from llmkernel.errors import HeaderError
from llmkernel.problem.dtypes import DTYPES
from llmkernel.problem.signature import ArraySpec, ScalarSpec

MAX_COMBINATIONS = 256
Fail = Callable[[str, str], NoReturn]


def check_header(header: LaunchHeader, kernels: Sequence[KernelDeclaration]) -> None:
    """Check every launch, for every combination of dtypes.

    Where a condition depends on nothing but `sizeof`, only the branch that a combination takes is checked.

    Raises
    ------
    llmkernel.errors.HeaderError
        At the launch or the argument that does not fit.
    """
    if not header.launches:
        raise HeaderError(
            "The launch header launches nothing.",
            line=header.end_line,
            rule="a launch header holds at least one launch `kernel<<<grid, block>>>(arguments)`",
            received=str(header.signature),
            next_step="Add a launch below the signature.",
        )
    for launch in header.launches:
        _check_template_count(launch, find_kernel(launch, kernels))
    for types in type_combinations(header):
        checker = _Checker(header, kernels, types)
        for launch in checker.reachable(header.statements):
            checker.check(launch)


def type_combinations(header: LaunchHeader) -> Iterator[dict[str, str]]:
    """Yield every choice of dtypes for the type variables."""
    names = [n for n, _ in header.signature.type_variables]
    choices = [c for _, c in header.signature.type_variables]
    for combination in islice(product(*choices), MAX_COMBINATIONS):
        yield dict(zip(names, combination, strict=True))


def reachable_launches(header: LaunchHeader, types: dict[str, str]) -> Iterator[Launch]:
    """Yield the launches that dtypes alone do not exclude."""
    yield from _Checker(header, (), types).reachable(header.statements)


def _check_template_count(launch: Launch, kernel: KernelDeclaration) -> None:
    parameters, given = kernel.template_parameters, len(launch.template_arguments)
    if any(p.is_pack for p in parameters):
        return
    required = sum(p.default is None for p in parameters)
    if required <= given <= len(parameters):
        return
    wanted = str(required) if required == len(parameters) else f"{required} to {len(parameters)}"
    _fail(
        launch,
        f"`{kernel.name}` takes {wanted} template arguments, the launch gives {given}.",
        f"line {kernel.line} declares `{kernel}`",
        "Write all template arguments: none is deduced from the arguments.",
    )


def _fail(launch: Launch, what: str, rule: str, next_step: str, column: int = 0) -> NoReturn:
    raise HeaderError(
        what,
        line=launch.line,
        column=column or launch.column,
        rule=rule,
        received=located(next(launch.lines()), launch.line, column or launch.column),
        next_step=next_step,
    )


class _Checker:
    """Checks launches for one choice of dtypes."""

    def __init__(
        self, header: LaunchHeader, kernels: Sequence[KernelDeclaration], types: dict[str, str]
    ) -> None:
        self.kernels = kernels
        self.types = types
        self.arrays: dict[str, ArraySpec] = {a.name: a for a in header.signature.arrays()}
        self.scalars = {s.name: s for s in header.signature.inputs if isinstance(s, ScalarSpec)}
        self.inputs = {s.name for s in header.signature.inputs if isinstance(s, ArraySpec) and not s.is_inout}
        facts = {f for e in expressions(header.statements) for f in e.facts if f.kind == "sizeof"}
        self.environment: dict[str, int | bool] = {f.key: sizeof(f.subject, types) for f in facts}

    def reachable(self, statements: Sequence[Statement]) -> Iterator[Launch]:
        for statement in statements:
            if isinstance(statement, Launch):
                yield statement
            elif isinstance(statement, Scratch):
                self.arrays.update({a.name: a for a in statement.arrays})
            elif isinstance(statement, Repeat):
                yield from self.reachable(statement.body)
            elif isinstance(statement, When):
                yield from self.branches(statement)

    def branches(self, statement: When) -> Iterator[Launch]:
        for branch in statement.branches:
            if not expression_is_known(branch.condition, self.environment):
                yield from self.reachable(branch.body)
            elif branch.condition.evaluate(self.environment):
                yield from self.reachable(branch.body)
                return
        yield from self.reachable(statement.otherwise)

    def check(self, launch: Launch) -> None:
        kernel = find_kernel(launch, self.kernels)
        texts = []
        cxx = {v: DTYPES[t].cxx[0] for v, t in self.types.items()}
        for i, argument in enumerate(launch.template_arguments):
            parameter = kernel.template_parameters[min(i, len(kernel.template_parameters) - 1)]
            is_cxx = isinstance(argument, CxxArgument)
            if parameter.is_type and not is_cxx:
                what = f"`{kernel.name}` takes a type for `{parameter.name}`, `{argument}` is a value."
                _fail(
                    launch,
                    what,
                    f"line {kernel.line} declares `{kernel}`",
                    "Pass a type variable, a dtype or a C++ type.",
                )
            if not parameter.is_type and is_cxx and (str(argument) in cxx or dtype_of(str(argument))):
                what = f"`{kernel.name}` takes a value for `{parameter.name}`, `{argument}` is a type."
                _fail(launch, what, f"line {kernel.line} declares `{kernel}`", "Pass an integer expression.")
            # A value does not change the type of a parameter, so any text stands for it.
            texts.append(substitute(argument.text, cxx) if isinstance(argument, CxxArgument) else "0")
        self.check_count(launch, kernel)
        mapping = template_mapping(kernel, texts)
        for use, declared in zip(launch.arguments, kernel.parameters, strict=True):
            self.check_argument(launch, kernel, use, declared, substitute(declared.base, mapping))

    def check_count(self, launch: Launch, kernel: KernelDeclaration) -> None:
        wanted, given = len(kernel.parameters), len(launch.arguments)
        if wanted != given:
            _fail(
                launch,
                f"`{kernel.name}` takes {wanted} arguments, the launch gives {given}.",
                f"line {kernel.line} declares `{kernel}`",
                "Pass one argument for every parameter.",
            )

    def check_argument(
        self,
        launch: Launch,
        kernel: KernelDeclaration,
        argument: LaunchArgument,
        declared: KernelParameter,
        base: str,
    ) -> None:
        column = argument.column
        rule = f"line {kernel.line} declares `{declared}`"
        if base != declared.base:
            rule += f", here `{base}{'*' * declared.pointer_depth}`"

        def fail(what: str, next_step: str) -> NoReturn:
            _fail(launch, what, rule, next_step, column)

        where = f"parameter `{declared.name or declared.type}` of `{kernel.name}`"
        if declared.is_reference:
            fail(f"`{argument}`: {where} is a reference.", "Take the parameter by value or as a pointer.")
        if isinstance(argument, TensorMapUse):
            if not is_tensor_map(base) or declared.pointer_depth:
                fail(
                    f"`{argument}`: {where} is `{declared.type}`.",
                    "Declare it `const __grid_constant__ CUtensorMap`.",
                )
            if not declared.is_grid_constant:
                fail(
                    f"`{argument}`: {where} is not a grid constant.",
                    "Declare it `const __grid_constant__ CUtensorMap`.",
                )
        elif isinstance(argument, ArrayUse):
            self.check_pointer(argument, declared, base, where, fail)
        elif declared.pointer_depth:
            fail(f"`{argument}` is a number, but {where} is a pointer.", "Pass an array.")
        else:
            self.check_number(argument, base, where, fail)

    def check_pointer(
        self, argument: ArrayUse, declared: KernelParameter, base: str, where: str, fail: Fail
    ) -> None:
        spec = self.arrays[argument.name]
        dtype = self.types.get(spec.dtype, spec.dtype)
        if is_tensor_map(base) and not declared.pointer_depth:
            fail(
                f"`{argument}` is an array, but {where} is a tensor map.",
                f"Pass `tensor_map({argument.name}, box=(…))`.",
            )
        if declared.pointer_depth != 1:
            fail(
                f"`{argument}` is an array, but {where} is `{declared.type}`.", "Take the array as a pointer."
            )
        if not accepts_pointer(base, dtype):
            fail(
                f"`{argument}` is {_article(dtype)} array, but {where} points at `{base}`.",
                f"Declare it `{DTYPES[dtype].cxx[0]}*`, or `uint4*` for raw bytes, or change the dtype.",
            )
        if argument.name in self.inputs and not declared.is_const:
            fail(
                f"`{argument}` is an input, but {where} may write to it.",
                f"Declare the parameter `const {base}*`, or the array `inout {argument.name}`.",
            )

    def check_number(self, argument: LaunchArgument, base: str, where: str, fail: Fail) -> None:
        found = dtype_of(base)
        if is_tensor_map(base):
            fail(f"`{argument}` is a number, but {where} is a tensor map.", "Pass `tensor_map(x, box=(…))`.")
        if found is None:
            fail(
                f"`{argument}`: {where} has the type `{base}`, which a launch cannot pass.",
                "Take numbers, bool, float2 or double2 by value; pass structs as uint8 arrays.",
            )
        assert found is not None
        target = DTYPES[found]
        if isinstance(argument, NumberUse):
            is_fit = target.kind == "f"
            source = "a floating-point number"
        elif isinstance(argument, ScalarUse):
            declared_dtype = self.scalars[argument.name].dtype
            name = self.types.get(declared_dtype, declared_dtype)
            is_fit, source = _is_scalar_fit(name, found), f"{_article(name)} scalar"
        else:
            is_fit, source = target.kind in "iubf", "an integer expression"
        if not is_fit:
            fail(f"`{argument}` is {source}, but {where} is `{base}`.", "Give both the same type.")


def _article(dtype: str) -> str:
    return f"{'an' if dtype.startswith('int') else 'a'} {dtype}"


def _is_scalar_fit(dtype: str, target: str) -> bool:
    """Whether every value of a scalar's dtype has a place in the parameter; integers are checked by value."""
    source, wanted = DTYPES[dtype], DTYPES[target]
    if source.kind in "iub":
        return wanted.kind in "iubf"
    return dtype == target or (source.kind == wanted.kind and source.itemsize < wanted.itemsize)
