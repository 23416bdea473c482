"""From a workload's inputs to a launch plan, payload bytes and slots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from llmkernel.candidate.arguments import ArrayArgument, CallArgument, ScalarValue
from llmkernel.candidate.candidate import Candidate
from llmkernel.devices.base import Bytes, DeviceLimits
from llmkernel.devices.plan import Argument, LaunchPlan, ScalarArgument
from llmkernel.errors import BindingError
from llmkernel.evaluation.draw import Slot
from llmkernel.evaluation.expected import Expected, Target
from llmkernel.problem.arrays import HostArray
from llmkernel.problem.dtypes import DTYPES, dtype_name
from llmkernel.problem.problem import HostInput, Problem
from llmkernel.problem.signature import ArraySpec
from llmkernel.problem.workloads import Workload


@dataclass
class Prepared:
    """A plan with the bytes of its inputs.

    Attributes
    ----------
    plan : LaunchPlan
    payloads : dict
        Input and inout buffers.
    misalign : dict
        Bytes past a 256-byte boundary.
    """

    plan: LaunchPlan
    payloads: dict[str, Bytes]
    misalign: dict[str, int]


def prepare(
    candidate: Candidate, inputs: Sequence[HostInput], limits: DeviceLimits, *, layout: str = "contiguous"
) -> Prepared:
    """Make the plan of one call.

    Raises
    ------
    llmkernel.errors.BindingError, llmkernel.errors.LaunchError
        As `Candidate.plan`.
    """
    specs = candidate.header.signature.inputs
    if len(specs) != len(inputs):
        raise BindingError(
            f"The number of inputs differs: the header takes {len(specs)}, the reference {len(inputs)}.",
            reason="count",
            rule="a header's inputs are the reference's, in its order",
            received=str(candidate.header.signature),
            next_step="Declare every input of the reference, also one that the kernel does not need.",
        )
    arguments: list[CallArgument] = []
    arrays: dict[int, str] = {}
    same: dict[str, str] = {}
    payloads: dict[str, Bytes] = {}
    misalign: dict[str, int] = {}
    for spec, value in zip(specs, inputs, strict=True):
        if not isinstance(value, np.ndarray):
            arguments.append(ScalarValue(value.item() if isinstance(value, np.generic) else value))
            continue
        if layout == "shared":
            same[spec.name] = arrays.setdefault(id(value), spec.name)
        storage, strides = _storage(value, is_strided=layout == "strided" and _takes_strides(spec))
        if layout == "misaligned":
            misalign[spec.name] = value.dtype.itemsize
        payloads[spec.name] = np.ascontiguousarray(storage).reshape(-1).view(np.uint8)
        arguments.append(
            ArrayArgument(dtype_name(value.dtype), value.shape, strides, misalign.get(spec.name, 0))
        )
    plan = _with_shared(candidate.plan(arguments, limits), same)
    names = {b.name for b in plan.buffers if b.role in ("input", "inout")}
    return Prepared(plan, {k: v for k, v in payloads.items() if k in names}, misalign)


def _with_shared(plan: LaunchPlan, same: Mapping[str, str]) -> LaunchPlan:
    """Return a plan whose launches get the address of another buffer in place of those that `same` names."""
    if all(name == other for name, other in same.items()):
        return plan

    def moved(argument: Argument) -> Argument:
        if isinstance(argument, ScalarArgument):
            return argument
        return replace(argument, buffer=same.get(argument.buffer, argument.buffer))

    launches = tuple(replace(x, arguments=tuple(map(moved, x.arguments))) for x in plan.launches)
    return replace(plan, launches=launches)


def shape_arguments(problem: Problem, candidate: Candidate, workload: Workload) -> list[CallArgument]:
    """Return the arguments of a workload by shape alone, to find out what it launches."""
    out: list[CallArgument] = []
    for i, (spec, example) in enumerate(zip(problem.signature.inputs, problem.inputs, strict=True)):
        if isinstance(spec, ArraySpec):
            own = workload.family == "example"
            shape = tuple(example.shape) if own else tuple(d.evaluate(workload.sizes) for d in spec.dims)
            declared = (
                candidate.header.signature.inputs[i] if i < len(candidate.header.signature.inputs) else None
            )
            strides = None
            if (
                workload.layout == "strided"
                and _takes_strides(declared)
                and len(shape) > 1
                and 0 not in shape
            ):
                steps = [int(np.prod(shape[k + 1 :], dtype=np.int64)) for k in range(len(shape))]
                steps[-2], steps[-1] = 1, shape[-2]
                strides = tuple(steps)
            address = element_size(spec.dtype) if workload.layout == "misaligned" else 0
            out.append(ArrayArgument(spec.dtype, shape, strides, address))
        else:
            out.append(ScalarValue(example.item() if isinstance(example, np.generic) else example))
    return out


def takes_strides(candidate: Candidate) -> bool:
    """Whether any input of the header is declared `strided`."""
    return any(_takes_strides(s) for s in candidate.header.signature.inputs)


def _takes_strides(spec: object) -> bool:
    return isinstance(spec, ArraySpec) and spec.is_strided


def _storage(value: HostArray, *, is_strided: bool) -> tuple[HostArray, tuple[int, ...] | None]:
    """Return the storage and strides in elements of a transposed or sliced copy of `value`."""
    if not is_strided or value.ndim == 0 or value.size == 0:
        return np.ascontiguousarray(value), None
    if value.ndim == 1:
        storage = np.zeros(2 * value.size - 1, value.dtype)
        storage[::2] = value
        return storage, (2,)
    turned = np.ascontiguousarray(np.swapaxes(value, -1, -2))
    strides = [s // value.dtype.itemsize for s in np.swapaxes(turned, -1, -2).strides]
    return turned, tuple(strides)


def match_slots(candidate: Candidate, plan: LaunchPlan, expected: Expected) -> list[Slot]:
    """Pair the header's outputs and inout inputs with what the reference returns and changes.

    Raises
    ------
    llmkernel.errors.BindingError
        When the counts differ.
    """
    signature = candidate.header.signature
    returned = [t for t in expected.targets if t.input_index is None]
    changed = {t.input_index: t for t in expected.targets if t.input_index is not None}
    inout = [(i, s) for i, s in enumerate(signature.inputs) if isinstance(s, ArraySpec) and s.is_inout]
    pairs: list[tuple[ArraySpec, Target]] = []
    if len(signature.outputs) == len(returned):
        pairs += list(zip(signature.outputs, returned, strict=True))
        pairs += [(s, changed[i]) for i, s in inout if i in changed]
    elif not signature.outputs and len(inout) == len(returned) and not changed:
        pairs += [(s, t) for (_, s), t in zip(inout, returned, strict=True)]
    elif not signature.outputs and changed:
        pairs += [(s, changed[i]) for i, s in inout if i in changed]
    else:
        raise BindingError(
            f"The header returns {_arrays(len(signature.outputs))}; the reference returns {_arrays(len(returned))}.",
            reason="count",
            rule="a header's outputs are the reference's results, in order",
            received=str(signature),
            next_step="Declare one output for each result of the reference.",
        )
    missing = [i for i in changed if i not in {k for k, _ in inout}]
    if missing:
        name = signature.inputs[missing[0]].name
        raise BindingError(
            f"The reference changes its input `{name}` in place; the header does not.",
            argument=name,
            reason="layout",
            rule="an input that the reference changes is declared `inout`",
            received=str(signature),
            next_step=f"Write `inout {name}` in the header and update it in place.",
        )
    return [_slot(plan, signature.outputs, spec, target) for spec, target in pairs]


def _slot(plan: LaunchPlan, outputs: tuple[ArraySpec, ...], spec: ArraySpec, target: Target) -> Slot:
    # `swap` may have bound an output to another buffer; results follow the order of the outputs.
    buffer = spec.name
    if spec in outputs and len(plan.results) == len(outputs):
        buffer = plan.results[outputs.index(spec)]
    declared = plan.buffer(buffer)
    return Slot(spec.name, buffer, declared.dtype, declared.shape, target)


def _arrays(count: int) -> str:
    return f"{count} array{'' if count == 1 else 's'}" if count else "none"


def element_size(dtype: str) -> int:
    """Return the size in bytes of a dtype's name."""
    return DTYPES[dtype].itemsize
