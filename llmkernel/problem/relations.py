"""Relations between the inputs of a draw: indices and lengths within their axis, offsets in order, searches in order.

A draw without them is no input of the problem. They are read from the example (offsets rise from 0 to the size of an axis)
and from the source of the reference, see `llmkernel.problem.usage`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from llmkernel.errors import LLMKernelError
from llmkernel.problem.arrays import HostArray
from llmkernel.problem.dtypes import DTYPES, dtype_name
from llmkernel.problem.signature import ArraySpec
from llmkernel.problem.usage import UNKNOWN, Usage, usages

if TYPE_CHECKING:
    from llmkernel.problem.families import Generator
    from llmkernel.problem.problem import HostInput, Problem

_MARKED = 0.05


@dataclass(frozen=True)
class Range:
    """Where integers of a draw lie.

    Attributes
    ----------
    low, high : int or None
        Inclusive; None where the example's own limit holds.
    is_index : bool
        They index an axis.
    """

    low: int | None = None
    high: int | None = None
    is_index: bool = False


def usages_of(problem: Problem) -> list[Usage]:
    """Return how the reference uses each input; marks and lengths of 0 only where it accepts them in the example."""
    if problem.usages is None:
        found = usages(problem.reference)
        names = problem.reference.parameters
        problem.usages = [_accepted(problem, i, found.get(n, UNKNOWN)) for i, n in enumerate(names)]
    return problem.usages


def _accepted(problem: Problem, number: int, usage: Usage) -> Usage:
    example = problem.host_inputs()[number]
    if not isinstance(example, np.ndarray):
        return Usage(is_number=usage.is_number)
    if usage is UNKNOWN or not example.size:
        return UNKNOWN
    marks = [m for m in usage.marks if _holds(example, m)]
    # A label may be refused where a measured number hardly is.
    if example.dtype.kind in "iu" and not _accepts(problem, number, marks):
        marks = [m for m in marks if _accepts(problem, number, [m])]
    is_length = usage.is_length and example.dtype.kind in "iu" and int(example.min()) >= 0
    return replace(
        usage, marks=tuple(marks), is_length=is_length and _accepts(problem, number, [0], is_finite=True)
    )


def _holds(array: HostArray, number: float) -> bool:
    """Whether the dtype of `array` holds a number exactly."""
    if DTYPES[dtype_name(array.dtype)].kind == "f":
        with np.errstate(all="ignore"):
            return float(np.asarray(number).astype(array.dtype)) == number
    if array.dtype.kind not in "iu" or number != int(number):
        return False
    limits = np.iinfo(array.dtype)
    return int(limits.min) <= number <= int(limits.max)


def _accepts(problem: Problem, number: int, values: Sequence[float], *, is_finite: bool = False) -> bool:
    """Whether the reference runs on the example with `values` in turn as the elements of one input."""
    if not values:
        return True
    inputs = problem.host_inputs()
    example = inputs[number]
    inputs[number] = np.resize(np.asarray(values).astype(example.dtype), example.shape)
    try:
        run = problem.run_reference(inputs)
    except LLMKernelError:
        return False
    results = [*run.results, *(run.inputs_after[i] for i in run.mutated)]
    return not is_finite or all(r.dtype.kind not in "fc" or bool(np.isfinite(r).all()) for r in results)


def offsets_axis(problem: Problem, spec: ArraySpec, example: HostArray) -> str | None:
    """Return the axis that an array divides: its integers rise from 0 to that axis's size, as a CSR matrix's rows do."""
    if example.ndim != 1 or example.size < 3 or example.dtype.kind not in "iu":
        return None
    if int(example[0]) != 0 or int(example[-1]) < 2 or bool((example[1:] < example[:-1]).any()):
        return None
    own = {str(d) for d in spec.dims}
    others = {str(d) for s in problem.signature.inputs if isinstance(s, ArraySpec) for d in s.dims} - own
    return next((s for s in sorted(others) if problem.sizes.get(s) == int(example[-1])), None)


def offsets_array(
    rng: Generator, shape: tuple[int, ...], dtype: np.dtype[Any], size: int, family: str
) -> HostArray:
    """Return offsets that divide an axis of `size` elements: by chance, evenly, or with all elements in one part."""
    count = shape[0]
    if count < 2:
        return np.zeros(shape, dtype)
    inner = count - 2
    if family == "ramp":
        cuts = np.linspace(0, size, count)[1:-1].astype(np.int64)
    elif family in ("constant", "crowded", "extremes"):
        cuts = np.where(np.arange(inner) < rng.integers(0, inner + 1), 0, size)
    else:
        cuts = np.sort(rng.integers(0, size, inner, endpoint=True))
    return np.concatenate([[0], cuts, [size]]).astype(dtype)


def range_of(
    problem: Problem, spec: ArraySpec, example: HostArray, sizes: dict[str, int], usage: Usage
) -> Range:
    """Return where the integers of an array lie at other sizes.

    An index stays below the smallest axis of a float array above its greatest value. What reaches the size of such an
    axis exactly counts along it, and never exceeds it; a length may also be 0.
    """
    if not example.size or example.dtype == np.bool_ or int(example.min()) < 0:
        return Range()
    top = int(example.max())
    own = {str(d) for d in spec.dims}
    others = {
        str(d)
        for s in problem.signature.inputs
        if isinstance(s, ArraySpec) and DTYPES[s.dtype].kind in "fc"
        for d in s.dims
    }
    axes = [s for s in others - own if s in problem.sizes]
    low = 0 if usage.is_length else None
    full = next((s for s in axes if problem.sizes[s] == top), None) if top > 1 else None
    if full is not None and usage.is_length:
        return Range(low, sizes[full])
    most = top if full is None else min(top, sizes[full])
    fits = [s for s in axes if top < problem.sizes[s] <= max(4 * (top + 1), 8)]
    symbol = min(fits, key=lambda s: problem.sizes[s], default=None)
    if symbol is None:
        return Range(low, most)
    # An axis that shrank to nothing leaves no index; the reference then refuses the draw, and it is listed.
    high = max(0, sizes[symbol] - 1)
    return Range(low, high if full is None else min(high, most), is_index=not usage.is_length)


def in_order(rng: Generator, array: HostArray, example: HostArray, usage: Usage) -> HostArray:
    """Return `array` in the order of the example, where the reference searches in it."""
    if not usage.is_sorted or example.ndim == 0 or not is_monotonic(example):
        return array
    turned = array[..., ::-1] if _is_falling(example) else array
    if _is_strict(turned):
        return array
    ordered = np.sort(array, axis=-1)
    if usage.is_strict and not _is_strict(ordered):
        # Between equal places nothing is defined.
        steps = rng.uniform(0.5, 1.5, array.shape).cumsum(axis=-1)
        ordered = (steps / max(1.0, float(steps.max(initial=0.0))) * 2.0 - 1.0).astype(array.dtype)
    return np.ascontiguousarray(ordered[..., ::-1]) if _is_falling(example) else ordered


def is_monotonic(array: HostArray) -> bool:
    """Whether the elements along the last axis only rise, or only fall."""
    after, before = array[..., 1:], array[..., :-1]
    return bool((after >= before).all() or (after <= before).all())


def _is_falling(example: HostArray) -> bool:
    return example.shape[-1] > 1 and bool((example[..., 0] > example[..., -1]).any())


def _is_strict(array: HostArray) -> bool:
    return bool(np.isfinite(array).all() and (array[..., 1:] > array[..., :-1]).all())


def with_marks(rng: Generator, array: HostArray, usage: Usage, limits: Range) -> HostArray:
    """Return `array` with a twentieth of its elements equal to numbers that the reference compares them with."""
    top = limits.high if limits.is_index else None
    marks = [m for m in usage.marks if top is None or m <= top]
    if not marks or not array.size or array.dtype == np.bool_:
        return array
    chosen = rng.choice(np.asarray(marks).astype(array.dtype), array.shape)
    return np.asarray(np.where(rng.random(array.shape) < _MARKED, chosen, array))


def breaks_relation(problem: Problem, inputs: Sequence[HostInput]) -> str:
    """Return the name of an input that has lost the order that the reference relies on; empty where there is none."""
    for i in _ordered(problem):
        value = inputs[i]
        # NaN stands at the end of what NumPy sorts.
        numbers = np.where(np.isnan(value), np.inf, value) if value.dtype.kind == "f" else value
        if not is_monotonic(numbers):
            return problem.signature.inputs[i].name
    return ""


def restored(problem: Problem, inputs: Sequence[HostInput]) -> list[HostInput]:
    """Return the inputs of a draw that was mixed from two others, again in the order that the reference relies on."""
    out = list(inputs)
    for i in _ordered(problem):
        example = problem.host_inputs()[i]
        ordered = np.sort(out[i], axis=-1)
        out[i] = np.ascontiguousarray(ordered[..., ::-1]) if _is_falling(example) else ordered
    return out


def _ordered(problem: Problem) -> list[int]:
    """Return the numbers of the inputs whose order the reference relies on."""
    used, examples = usages_of(problem), problem.host_inputs()
    found = []
    for i, (spec, example) in enumerate(zip(problem.signature.inputs, examples, strict=True)):
        if isinstance(spec, ArraySpec) and example.ndim > 0:
            is_searched = used[i].is_sorted and is_monotonic(example)
            if is_searched or offsets_axis(problem, spec, example) is not None:
                found.append(i)
    return found
