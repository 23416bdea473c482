"""How far from the float64 oracle a result may be: as right as the library, not "close".

Error is measured per row (last axis) relative to the greatest magnitude of that row, never element by element against
an absolute tolerance: a kernel of zeros passes a softmax that way. What is allowed is

    min(max(4 · reference's own error, floor), 16 · floor),   floor = 2 · eps(dtype) + 8 · eps(accumulation) · sqrt(n)

with n the measured length of the reduction. The form is that of carmen-kernels' judge (a multiple of the library's error,
a floor from eps and sqrt(n), a hard cap), the accumulation's eps being that of float32, or of float64 under a float64
contract. The cap never undercuts what the reference itself reaches on the draw. Where a result is ill-conditioned (a sum
that cancels), eight times the change that moving the inputs by half a unit in the last place makes is allowed besides:
under random moves of sqrt(n) times that, or under moves that do not cancel. It is computed only when it
decides.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from llmkernel.evaluation.blocks import Block, map_blocks
from llmkernel.problem.arrays import HostArray
from llmkernel.problem.dtypes import DTYPES, dtype_name

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_] | None

_REFERENCE_FACTOR = 4.0
_CAP_FACTOR = 16.0
_CONDITION_FACTOR = 8.0
_REACHED_FACTOR = 1.5


@dataclass(frozen=True)
class Allowance:
    """The allowed row-scaled error of one result of one draw, and where it comes from.

    Attributes
    ----------
    relative : float
        Allowed error relative to a row's scale.
    floor : float
        2 eps + 8 eps_accumulation sqrt(n).
    reference_error : float
        Row-scaled error of the reference at its own dtype.
    reduction_length : int
        n.
    policy : str
        ``derived``, ``user`` or ``exact``.
    """

    relative: float
    floor: float
    reference_error: float
    reduction_length: int
    policy: str

    @property
    def is_above_cap(self) -> bool:
        """Whether the reference's own error lifted what is allowed above the cap."""
        return self.relative > _CAP_FACTOR * self.floor


@dataclass(frozen=True)
class Deviation:
    """How a result deviates from the oracle.

    Attributes
    ----------
    error : float
        Greatest row-scaled error, over comparable elements.
    bad : numpy.ndarray
        Flat indices of elements outside of what is allowed, at most `LISTED`.
    bad_count : int
    """

    error: float
    bad: npt.NDArray[np.int64]
    bad_count: int


LISTED = 64


def floor_of(dtype: str, reduction_length: int) -> float:
    """Return the floor of the allowed error for a result dtype and a reduction over `reduction_length` elements."""
    d = DTYPES[dtype]
    accumulation = (
        float(np.finfo(np.float64).eps)
        if dtype in ("float64", "complex128")
        else float(np.finfo(np.float32).eps)
    )
    return 2.0 * d.eps + 8.0 * accumulation * float(np.sqrt(max(1, reduction_length)))


def allowance(
    dtype: str, reduction_length: int, reference_error: float, *, user: float | None, has_oracle: bool
) -> Allowance:
    """Return what is allowed for one result of one draw.

    Parameters
    ----------
    dtype : str
        Dtype of the result.
    reduction_length : int
    reference_error : float
        Row-scaled error of the reference against the oracle; 0 without an oracle.
    user : float or None
        The user's own relative tolerance.
    has_oracle : bool
        False where the reference does not run in float64: the cap is then used.
    """
    floor = floor_of(dtype, reduction_length)
    if user is not None:
        return Allowance(user, floor, reference_error, reduction_length, "user")
    cap = _CAP_FACTOR * floor
    if not has_oracle:
        return Allowance(cap, floor, 0.0, reduction_length, "derived")
    derived = min(max(_REFERENCE_FACTOR * reference_error, floor), cap)
    return Allowance(
        max(derived, _REACHED_FACTOR * reference_error), floor, reference_error, reduction_length, "derived"
    )


def as_rows(array: HostArray) -> npt.NDArray[Any]:
    """View a result as rows of its last axis; 0-d and 1-d arrays are one row."""
    if array.ndim < 2:
        return array.reshape(1, -1)
    # Both sizes in full: NumPy cannot derive one (-1) where the other is 0.
    return array.reshape(math.prod(array.shape[:-1]), array.shape[-1])


def row_scale(oracle: HostArray, mask: Mask = None) -> Floats:
    """Return the greatest finite magnitude of each row's comparable elements, (rows, 1)."""
    rows, marks = as_rows(oracle), None if mask is None else as_rows(mask)
    scale = np.zeros((rows.shape[0], 1))

    def greatest(block: Block) -> tuple[slice, Floats]:
        magnitude = np.abs(rows[block])
        if marks is not None:
            magnitude = np.where(marks[block] & np.isfinite(magnitude), magnitude, 0.0)
        return block[0], magnitude.max(axis=1, keepdims=True, initial=0.0)

    for where, most in map_blocks(greatest, *rows.shape):
        np.maximum(scale[where], most, out=scale[where])
    return scale


def smallest_step(dtype: str) -> float:
    """Return the spacing of the dtype's denormal numbers: no result can be nearer than that."""
    name = {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)
    return float(ml_dtypes.finfo(DTYPES[name].numpy).smallest_subnormal)


def smallest_normal(dtype: str) -> float:
    """Return the smallest number of the dtype that is not denormal."""
    name = {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)
    return float(ml_dtypes.finfo(DTYPES[name].numpy).smallest_normal)


def comparable(got: HostArray, oracle: HostArray, at_dtype: HostArray | None) -> Mask:
    """Return where an element can be judged by its distance: finite in the oracle and at the contract's dtype.

    Parameters
    ----------
    got, oracle : numpy.ndarray
    at_dtype : numpy.ndarray or None
        The reference's own result, for elements that overflow at the working dtype only.

    Returns
    -------
    numpy.ndarray or None
        None where every element is comparable: the common case costs no mask.
    """
    rows = as_rows(oracle)
    own = None if at_dtype is None else as_rows(at_dtype)

    def finite(block: Block) -> npt.NDArray[np.bool_]:
        with np.errstate(all="ignore"):
            ok = np.isfinite(rows[block]) & np.isfinite(rows[block].astype(got.dtype))
        return np.asarray(ok if own is None else ok & np.isfinite(own[block]))

    if all(map_blocks(lambda b: bool(finite(b).all()), *rows.shape)):
        return None
    mask = np.zeros(rows.shape, np.bool_)
    for block, ok in map_blocks(lambda b: (b, finite(b)), *rows.shape):
        mask[block] = ok
    return mask.reshape(oracle.shape)


def row_error(got: HostArray, oracle: HostArray, mask: Mask) -> float:
    """Return the greatest row-scaled error; elements outside of `mask` count as exact."""
    scale = row_scale(oracle, mask)
    scale[scale == 0] = 1.0
    return _compare(got, oracle, mask, scale, np.inf, 0.0).error


@dataclass
class _Seen:
    error: float
    bad: list[npt.NDArray[np.int64]]
    bad_count: int


def _compare(
    got: HostArray,
    oracle: HostArray,
    mask: Mask,
    scale: Floats,
    limit: Floats | float,
    step: float,
    *,
    listed: int | None = LISTED,
) -> _Seen:
    """Compare block by block; errors up to `step` count as none, `listed` indices are kept of a block."""
    mine, right = as_rows(got), as_rows(oracle)
    marks = None if mask is None else as_rows(mask)
    wide = np.complex128 if np.iscomplexobj(oracle) else np.float64
    columns = right.shape[1]

    def look(block: Block) -> tuple[float, npt.NDArray[np.int64], int]:
        with np.errstate(all="ignore"):
            absolute = np.abs(mine[block].astype(wide) - right[block])
            if marks is not None:
                absolute = np.where(marks[block], absolute, 0.0)
            absolute = np.where(np.isnan(absolute), np.inf, absolute)
            worst = float(np.where(absolute > step, absolute / scale[block[0]], 0.0).max(initial=0.0))
        over = np.argwhere(absolute > (limit if isinstance(limit, float) else limit[block[0]]))
        flat = (over[:listed, 0] + block[0].start) * columns + over[:listed, 1] + block[1].start
        return worst, flat.astype(np.int64), len(over)

    found = map_blocks(look, *right.shape)
    return _Seen(
        max((w for w, _, _ in found), default=0.0),
        [f for _, f, _ in found if f.size],
        sum(n for _, _, n in found),
    )


def deviation(
    got: HostArray,
    oracle: HostArray,
    mask: Mask,
    allowed: Allowance,
    condition: Floats | None = None,
    slack: float = 0.0,
) -> Deviation:
    """Compare one result with the oracle.

    Parameters
    ----------
    got : numpy.ndarray
        The candidate's result, at the contract's dtype.
    oracle : numpy.ndarray
        float64 or complex128, of the same shape.
    mask : numpy.ndarray or None
        Comparable elements.
    allowed : Allowance
    condition : numpy.ndarray, optional
        (rows, 1): absolute change of each row when the inputs are rounded.
    slack : float
        Further absolute error that is allowed.
    """
    if not got.size:
        return Deviation(0.0, np.zeros(0, np.int64), 0)
    scale, limit, step = _limits(got, oracle, mask, allowed, condition, slack)
    seen = _compare(got, oracle, mask, scale, limit, step)
    bad = np.concatenate(seen.bad)[:LISTED] if seen.bad else np.zeros(0, np.int64)
    return Deviation(seen.error, bad, seen.bad_count)


def _limits(
    got: HostArray,
    oracle: HostArray,
    mask: Mask,
    allowed: Allowance,
    condition: Floats | None,
    slack: float,
) -> tuple[Floats, Floats, float]:
    """Return each row's scale and limit, (rows, 1), and the error that counts as none."""
    step = smallest_step(dtype_name(got.dtype)) + slack
    scale = row_scale(oracle, mask)
    limit = allowed.relative * scale + step
    if condition is not None:
        limit = limit + _CONDITION_FACTOR * condition
    scale[scale == 0] = 1.0
    return scale, limit, step


def deviating(
    got: HostArray,
    oracle: HostArray,
    mask: Mask,
    allowed: Allowance,
    condition: Floats | None = None,
    slack: float = 0.0,
) -> list[npt.NDArray[np.int64]]:
    """Return the flat indices of all elements that `deviation` counts, in parts; takes its arguments."""
    scale, limit, step = _limits(got, oracle, mask, allowed, condition, slack)
    return _compare(got, oracle, mask, scale, limit, step, listed=None).bad


def condition_of(oracle: HostArray, perturbed: HostArray, mask: Mask) -> Floats:
    """Return each row's absolute change under rounded inputs, (rows, 1)."""
    with np.errstate(all="ignore"):
        change = np.abs(as_rows(perturbed) - as_rows(oracle))
    usable = np.isfinite(change) if mask is None else as_rows(mask) & np.isfinite(change)
    return np.asarray(np.where(usable, change, 0.0).max(axis=1, keepdims=True, initial=0.0))


def special_mismatch(
    got: HostArray,
    oracle: HostArray,
    at_dtype: HostArray | None,
    allowed: float = 0.0,
    *,
    is_sum: bool = False,
) -> npt.NDArray[np.int64]:
    """Return flat indices where NaN or ±infinity stand where they must not, or are missing.

    Where the oracle, rounded to the dtype, and the reference at its dtype disagree (an intermediate result of the
    reference overflowed), and within `allowed` of the dtype's greatest number, nothing is judged. Where the oracle is
    finite and beyond the dtype, a sum (`is_sum`, and every complex product) may meet infinities of both signs on the
    way, or with fused multiply-adds not: NaN is then as good as infinity.
    """
    dtype = DTYPES[dtype_name(got.dtype)]
    if dtype.kind not in "fc":
        return np.zeros(0, np.int64)
    mine, right = as_rows(got), as_rows(oracle)
    own = None if at_dtype is None else as_rows(at_dtype)
    columns = right.shape[1]
    margin = min(0.5, max(2.0 * allowed, 4.0 * dtype.eps))
    largest = _largest(dtype.name)
    with np.errstate(over="ignore"):
        lowest, highest = largest * (1.0 - margin), largest * (1.0 + margin)

    def look(block: Block) -> npt.NDArray[np.int64]:
        with np.errstate(all="ignore"):
            expected = right[block].astype(got.dtype)
            if np.isfinite(expected).all() and np.isfinite(mine[block]).all():
                return np.zeros(0, np.int64)
            wrong = ~_same_special(mine[block], expected)
            if own is not None:
                wrong &= _same_special(own[block], expected)
            is_finite = np.isfinite(right[block])
            magnitude = np.abs(right[block])
            near = is_finite & (magnitude > lowest) & (magnitude < highest) & ~np.isnan(mine[block])
            if is_sum or dtype.kind == "c":
                near |= is_finite & ~np.isfinite(expected) & ~np.isfinite(mine[block])
            if dtype.name in ("float64", "complex128"):
                # The oracle has no headroom there: a product that is fused with a sum need not overflow as it does.
                near |= np.isinf(expected) & np.isfinite(mine[block]) & (np.abs(mine[block]) > largest / 8)
        at = np.argwhere(wrong & ~near)
        return np.asarray((at[:, 0] + block[0].start) * columns + at[:, 1] + block[1].start)

    found = map_blocks(look, *right.shape)
    return np.concatenate(found).astype(np.int64) if found else np.zeros(0, np.int64)


def _largest(dtype: str) -> float:
    name = {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)
    return float(ml_dtypes.finfo(DTYPES[name].numpy).max)


def _same_special(a: HostArray, b: HostArray) -> npt.NDArray[np.bool_]:
    a_nan, b_nan = np.isnan(a), np.isnan(b)
    if np.iscomplexobj(a):
        a_inf, b_inf = np.isinf(a) & ~a_nan, np.isinf(b) & ~b_nan
        return np.asarray((a_nan == b_nan) & (a_inf == b_inf))
    a_inf, b_inf = np.isinf(a), np.isinf(b)
    sign = np.signbit(a) == np.signbit(b)
    return np.asarray((a_nan == b_nan) & (a_inf == b_inf) & (~a_inf | sign))
