"""Telling low-precision arithmetic from a wrong formula.

Both leave a small error in every element. The residual of a wrong formula is a smooth function of the inputs: move the
inputs a little and it hardly changes. The residual of rounding to half precision is drawn anew.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from llmkernel.evaluation.draw import Draw
from llmkernel.evaluation.tolerance import as_rows, comparable, row_scale
from llmkernel.problem.arrays import HostArray
from llmkernel.problem.dtypes import DTYPES, dtype_name
from llmkernel.problem.problem import HostInput

# Several units in the last place of bfloat16, and small enough for any smooth residual to stay.
MOVE = 2.0**-6
# A result with a greater error than this is wrong, whatever the precision.
GREATEST_ERROR = 0.05
_CORRELATION = 0.7
# Fewer residuals say nothing; small results are drawn again until there are as many.
_ELEMENTS = 32
_MOST_DRAWS = 15


def moved_inputs(inputs: list[HostInput], seed: int) -> list[HostInput]:
    """Return the inputs with every float moved by up to 1.6 %."""
    rng = np.random.default_rng(seed)
    out: list[HostInput] = []
    for value in inputs:
        if isinstance(value, np.ndarray) and DTYPES[dtype_name(value.dtype)].kind in "fc":
            factor = 1.0 + MOVE * rng.uniform(-1.0, 1.0, value.shape)
            out.append(
                (value.astype(np.complex128 if np.iscomplexobj(value) else np.float64) * factor).astype(
                    value.dtype
                )
            )
        else:
            out.append(value)
    return out


def draws_needed(draw: Draw) -> int:
    """Return how many neighbouring draws tell rounding from a formula: an odd number, more where results are few."""
    size = min((s.got.size for s in draw.slots if s.got is not None and not s.target.is_exact), default=0)
    return min(_MOST_DRAWS, 2 * -(-_ELEMENTS // max(1, size)) - 1)


def is_downgraded(draws: Sequence[Draw]) -> float | None:
    """Compare the residuals of neighbouring draws, pair by pair.

    Parameters
    ----------
    draws : sequence of Draw
        The failing draw and `draws_needed` neighbours.

    Returns
    -------
    float or None
        The greatest row-scaled error when the residual looks like rounding; None when it does not.
    """
    errors = []
    for number, slot in enumerate(draws[0].slots):
        if slot.target.is_exact or DTYPES[slot.dtype].itemsize < 4:
            return None
        residuals = [_residual_of(d, number) for d in draws]
        if any(r is None for r in residuals):
            return None
        x = np.concatenate([r for r in residuals[0::2] if r is not None])
        y = np.concatenate([r for r in residuals[1::2] if r is not None])
        worst = float(max(np.abs(x).max(initial=0.0), np.abs(y).max(initial=0.0)))
        if not worst:
            continue
        if not worst <= GREATEST_ERROR or x.size < _ELEMENTS or _correlation(x, y) > _CORRELATION:
            return None
        errors.append(worst)
    return max(errors) if errors else None


def _residual_of(draw: Draw, number: int) -> npt.NDArray[np.float64] | None:
    slot = draw.slots[number]
    return None if slot.got is None else _residual(slot.got, slot.target.oracle)


def _residual(got: HostArray, oracle: HostArray) -> npt.NDArray[np.float64]:
    mask = comparable(got, oracle, None)
    with np.errstate(all="ignore"):
        scale = row_scale(oracle, mask)
        wide = np.complex128 if np.iscomplexobj(oracle) else np.float64
        raw = (as_rows(got).astype(wide) - as_rows(oracle)) / np.where(scale > 0, scale, 1.0)
    if mask is not None:
        raw = np.where(as_rows(mask), raw, 0.0)
    return np.asarray(np.real(raw), dtype=np.float64).ravel()


def _correlation(x: npt.NDArray[np.float64], y: npt.NDArray[np.float64]) -> float:
    norm = float(np.linalg.norm(x) * np.linalg.norm(y))
    return abs(float(x @ y)) / norm if norm else 0.0
