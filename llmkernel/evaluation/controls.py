"""Trivial controls: a check that cannot fail is no check.

Zeros, a constant, a copy of an input and the result of another draw are judged as a candidate would be. If one of them
passes every draw, nobody can tell right from wrong here and the verdict is `inconclusive`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from llmkernel.evaluation.draw import Draw
from llmkernel.evaluation.expected import Target
from llmkernel.evaluation.tolerance import comparable, deviation, special_mismatch
from llmkernel.problem.arrays import HostArray


def passing_control(draws: Sequence[Draw]) -> str | None:
    """Return a sentence about the first control that passes every draw, or None."""
    usable = [d for d in draws if d.expected.targets and any(t.at_dtype.size for t in d.expected.targets)]
    if not usable:
        return "Every draw is empty: there is nothing to compare."
    if _passes(usable, lambda d, i: np.zeros_like(d.expected.targets[i].at_dtype)):
        return "Zeros would pass: the reference gives zeros for every draw."
    if _passes(usable, _constant(usable)):
        return "A constant would pass: the reference hardly depends on its inputs."
    if len(usable) > 1 and _passes(usable[1:], _of_other_draw(usable)):
        return "The result of another draw would pass: the reference hardly depends on its inputs."
    copied = _copied_input(usable)
    if copied is not None:
        return f"A copy of `{copied}` would pass, although the reference is not the identity."
    return None


def _passes(draws: Sequence[Draw], control: Callable[[Draw, int], HostArray | None]) -> bool:
    for draw in draws:
        for i, target in enumerate(draw.expected.targets):
            value = control(draw, i)
            if value is None or not _accepts(target, value):
                return False
    return True


def _accepts(target: Target, value: HostArray) -> bool:
    if value.shape != target.at_dtype.shape or value.dtype != target.at_dtype.dtype:
        return False
    if target.is_exact:
        return bool(np.array_equal(value, target.at_dtype))
    if special_mismatch(value, target.oracle, target.at_dtype).size:
        return False
    mask = comparable(value, target.oracle, target.at_dtype)
    return deviation(value, target.oracle, mask, target.allowed).bad_count == 0


def _constant(draws: Sequence[Draw]) -> Callable[[Draw, int], HostArray]:
    """Return the control that fills a result with its mean; a result of one element, with the mean over all draws."""

    def control(draw: Draw, i: int) -> HostArray:
        value = draw.expected.targets[i].at_dtype
        if value.size != 1:
            return _mean(value)
        all_values = [d.expected.targets[i].at_dtype.reshape(-1) for d in draws]
        return _mean(np.concatenate(all_values))[:1].reshape(value.shape)

    return control


def _mean(value: HostArray) -> HostArray:
    if not value.size:
        return value
    if value.dtype == np.bool_:
        return np.full_like(value, bool(np.count_nonzero(value) * 2 > value.size))
    with np.errstate(all="ignore"):
        finite = value[np.isfinite(value.astype(np.complex128 if np.iscomplexobj(value) else np.float64))]
        centre = (
            finite.astype(np.float64 if not np.iscomplexobj(finite) else np.complex128).mean()
            if finite.size
            else 0
        )
        return np.full(value.shape, centre).astype(value.dtype)


def _of_other_draw(draws: Sequence[Draw]) -> Callable[[Draw, int], HostArray | None]:
    def control(draw: Draw, i: int) -> HostArray | None:
        shape = draw.expected.targets[i].at_dtype.shape
        for other in draws:
            if other is not draw and other.workload.family != draw.workload.family:
                value = other.expected.targets[i].at_dtype
                if value.shape == shape:
                    return value
        return None

    return control


def _copied_input(draws: Sequence[Draw]) -> str | None:
    """Return the input whose copy would pass everywhere although some draw's result differs from it."""
    names = [s.name for s in draws[0].expected.problem.signature.inputs]
    for k, name in enumerate(names):
        copies = _passes(draws, lambda d, i, k=k: _as_result(d, i, k))  # type: ignore[misc]
        identity = all(
            _as_result(d, i, k) is not None
            and np.array_equal(_as_result(d, i, k), t.at_dtype, equal_nan=_is_float(t))  # type: ignore[arg-type]
            for d in draws
            for i, t in enumerate(d.expected.targets)
        )
        if copies and not identity:
            return name
    return None


def _is_float(target: Target) -> bool:
    return not target.is_exact


def _as_result(draw: Draw, i: int, k: int) -> HostArray | None:
    value = draw.expected.inputs[k]
    target = draw.expected.targets[i]
    if (
        not isinstance(value, np.ndarray)
        or value.shape != target.at_dtype.shape
        or value.dtype != target.at_dtype.dtype
    ):
        return None
    return value
