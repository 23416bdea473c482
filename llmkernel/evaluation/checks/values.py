"""Values are as right as the library's.

Reason: zeros pass ``allclose`` on a softmax (KernelBench issue 165), and half-precision arithmetic passes 1e-2. The
tolerance and its source: `llmkernel.evaluation.tolerance`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from llmkernel.evaluation.checks.base import Check
from llmkernel.evaluation.checks.repeatable import uses_atomics
from llmkernel.evaluation.draw import Draw, Finding, Slot, examples
from llmkernel.evaluation.error_map import error_map
from llmkernel.evaluation.tolerance import comparable, deviating, deviation, smallest_normal
from llmkernel.problem.dtypes import DTYPES

_MOST_LOOKED_AT = 1 << 20


class Values(Check):
    """Compare values with the float64 oracle, row by row."""

    name = "values"
    covers = "row-scaled error against the float64 oracle within what is allowed"

    def inspect(self, draw: Draw) -> Finding | None:
        """Return a finding for the first result outside of what is allowed."""
        for number, slot in enumerate(draw.slots):
            if slot.got is None:
                continue
            found = _exact(draw, slot) if slot.target.is_exact else _close(draw, slot, number)
            if found is not None:
                return found
        return None


def _exact(draw: Draw, slot: Slot) -> Finding | None:
    assert slot.got is not None
    if slot.got.dtype == np.bool_:
        # NumPy takes every byte but 0 for true; a kernel that reads 2 as a bool does not.
        stored = slot.got.view(np.uint8)
        broken = np.flatnonzero(stored > 1)
        if broken.size:
            detail = f"A bool is stored as {int(stored.reshape(-1)[broken[0]])}; it must be 0 or 1."
            return _finding(draw, slot, broken, int(broken.size), detail)
    wrong = np.flatnonzero(slot.got != slot.target.oracle)
    if not wrong.size:
        return None
    return _finding(draw, slot, wrong, int(wrong.size), "Integers and booleans must be exact.")


def _close(draw: Draw, slot: Slot, number: int) -> Finding | None:
    target = slot.target
    assert slot.got is not None
    mask = comparable(slot.got, target.oracle, target.at_dtype)
    slack = _flushed(draw, slot)
    seen = deviation(slot.got, target.oracle, mask, target.allowed, slack=slack)
    conditioned = False
    if seen.bad_count:
        # Only now: how much do the oracle's own results move when the inputs are rounded?
        condition = draw.condition(number)
        if condition is not None:
            seen = deviation(slot.got, target.oracle, mask, target.allowed, condition, slack)
            conditioned = True
    draw.figures["error"] = max(draw.figures.get("error", 0.0), seen.error)
    draw.figures["allowed"] = target.allowed.relative
    draw.figures["reference_error"] = target.allowed.reference_error
    draw.figures["floor"] = target.allowed.floor
    draw.figures["eps"] = DTYPES[target.dtype].eps
    if not seen.bad_count:
        if conditioned:
            draw.figures["is_ill_conditioned"] = 1.0
        return None
    draw.figures["failed"] = 1.0
    detail = f"Row-scaled error {seen.error:.3g}, allowed {target.allowed.relative:.3g}."
    condition = draw.condition(number) if conditioned else None
    wrong = deviating(slot.got, target.oracle, mask, target.allowed, condition, slack)
    return _finding(draw, slot, seen.bad, seen.bad_count, detail, wrong)


def _flushed(draw: Draw, slot: Slot) -> float:
    """Return what float atomics may lose: on global memory they flush denormal operands to zero (PTX ISA, ``atom``)."""
    if not uses_atomics(draw.source):
        return 0.0
    return smallest_normal(slot.dtype) * slot.target.allowed.reduction_length


def _finding(
    draw: Draw,
    slot: Slot,
    flat: np.ndarray,
    count: int,
    detail: str,
    wrong: Sequence[np.ndarray] | None = None,
) -> Finding:
    """Return the finding; `wrong` holds all wrong elements where `flat` lists only some."""
    assert slot.got is not None
    shown = examples(slot, flat)
    first = shown[0]
    where = f"[{', '.join(map(str, first['index']))}]"
    return Finding(
        "wrong_value",
        f"`{slot.name}`: {count} of {slot.got.size} elements are wrong at {draw.workload.label()}; {where}: got "
        f"{first['got']}, expected {first['expected']}. {detail}",
        {
            **draw.where(),
            "result": slot.name,
            "count": count,
            "total": int(slot.got.size),
            "examples": shown,
            "pattern": _pattern(slot, flat if not wrong else _sample(wrong), count),
            "map": error_map(slot.shape, [flat] if wrong is None else wrong),
        },
    )


def _sample(wrong: Sequence[np.ndarray]) -> np.ndarray:
    """Return wrong elements from all over the result, the first and the last among them."""
    every = np.concatenate(wrong)
    return np.append(every[:: 1 + every.size // _MOST_LOOKED_AT], every[-1:])


def _pattern(slot: Slot, flat: np.ndarray, count: int) -> str:
    """Say where the wrong elements are, in words that point at the mistake."""
    assert slot.got is not None
    if count == slot.got.size:
        return "all elements"
    if not slot.shape or not flat.size:
        return ""
    index = np.unravel_index(flat, slot.shape)
    notes = []
    for axis, size in enumerate(slot.shape):
        values = np.unique(index[axis])
        if values.size == 1 and size > 1:
            notes.append(f"only index {int(values[0])} of axis {axis} (size {size})")
        elif size > 1 and int(values.min()) > 0 and int(values.max()) == size - 1:
            notes.append(f"from index {int(values.min())} of axis {axis} (size {size}) on")
    return "; ".join(notes)
