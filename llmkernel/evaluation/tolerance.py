"""How far from the float64 oracle a result may be: as right as the library, not "close".

Error is measured per row (last axis) relative to the greatest magnitude of that row, never element by element against
an absolute tolerance: a kernel of zeros passes a softmax that way. What is allowed is

    min(max(4 · reference's own error, floor), 16 · floor),   floor = 2 · eps(dtype) + 8 · eps(accumulation) · sqrt(n)

with n the measured length of the reduction. The form is that of carmen-kernels' judge (a multiple of the library's error,
a floor from eps and sqrt(n), a hard cap), the accumulation's eps being that of float32, or of float64 under a float64
contract. The cap never undercuts what the reference itself reaches on the draw. Where a result is ill-conditioned (a sum
that cancels), eight times the change that moving the inputs by half a unit in the last place makes is allowed besides:
sqrt(n) times the change under random moves, or the change under moves that do not cancel. It is computed only when it
decides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from llmkernel.problem.arrays import HostArray
from llmkernel.problem.dtypes import DTYPES, dtype_name

Floats = npt.NDArray[np.float64]

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
    return array.reshape(1, -1) if array.ndim < 2 else array.reshape(-1, array.shape[-1])


def row_scale(oracle: HostArray) -> Floats:
    """Return the greatest finite magnitude of each row, (rows, 1)."""
    rows = np.abs(as_rows(oracle))
    finite = np.where(np.isfinite(rows), rows, 0.0)
    return np.asarray(finite.max(axis=1, keepdims=True, initial=0.0), dtype=np.float64)


def smallest_step(dtype: str) -> float:
    """Return the spacing of the dtype's denormal numbers: no result can be nearer than that."""
    name = {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)
    return float(ml_dtypes.finfo(DTYPES[name].numpy).smallest_subnormal)


def comparable(got: HostArray, oracle: HostArray, at_dtype: HostArray | None) -> npt.NDArray[np.bool_]:
    """Return where an element can be judged by its distance: finite in the oracle and at the contract's dtype.

    Parameters
    ----------
    got, oracle : numpy.ndarray
    at_dtype : numpy.ndarray or None
        The reference's own result, for elements that overflow at the working dtype only.
    """
    with np.errstate(all="ignore"):
        rounded = oracle.astype(got.dtype)
    ok = np.isfinite(oracle) & np.isfinite(rounded.astype(oracle.dtype))
    if at_dtype is not None:
        ok &= np.isfinite(at_dtype.astype(oracle.dtype))
    return np.asarray(ok)


def row_error(
    got: HostArray, oracle: HostArray, mask: npt.NDArray[np.bool_]
) -> tuple[Floats, Floats, Floats]:
    """Return absolute errors (rows, columns), each row's scale (rows, 1) and the row-scaled errors.

    Elements outside of `mask` count as exact.
    """
    wide = np.complex128 if np.iscomplexobj(oracle) else np.float64
    with np.errstate(all="ignore"):
        absolute = np.abs(as_rows(got).astype(wide) - as_rows(oracle))
    absolute = np.where(as_rows(mask), absolute, 0.0)
    absolute = np.where(np.isnan(absolute), np.inf, absolute)
    scale = row_scale(np.where(mask, oracle, 0))
    with np.errstate(all="ignore"):
        relative = np.where(absolute == 0, 0.0, absolute / np.where(scale > 0, scale, 1.0))
    return absolute, scale, np.asarray(relative)


def limits_of(oracle: HostArray, mask: npt.NDArray[np.bool_], dtype: str, relative: float) -> Floats:
    """Return the allowed absolute error of each row, (rows, 1)."""
    return np.asarray(relative * row_scale(np.where(mask, oracle, 0)) + smallest_step(dtype))


def deviation(
    got: HostArray,
    oracle: HostArray,
    mask: npt.NDArray[np.bool_],
    allowed: Allowance,
    condition: Floats | None = None,
) -> Deviation:
    """Compare one result with the oracle.

    Parameters
    ----------
    got : numpy.ndarray
        The candidate's result, at the contract's dtype.
    oracle : numpy.ndarray
        float64 or complex128, of the same shape.
    mask : numpy.ndarray
        Comparable elements.
    allowed : Allowance
    condition : numpy.ndarray, optional
        (rows, 1): absolute change of each row when the inputs are rounded.
    """
    if not got.size:
        return Deviation(0.0, np.zeros(0, np.int64), 0)
    dtype = dtype_name(got.dtype)
    absolute, _, relative = row_error(got, oracle, mask)
    limit = limits_of(oracle, mask, dtype, allowed.relative)
    if condition is not None:
        limit = limit + _CONDITION_FACTOR * condition
    bad = np.flatnonzero(absolute > limit)
    within = np.where(absolute > smallest_step(dtype), relative, 0.0)
    return Deviation(float(within.max()), bad[:LISTED].astype(np.int64), int(bad.size))


def condition_of(oracle: HostArray, perturbed: HostArray, mask: npt.NDArray[np.bool_]) -> Floats:
    """Return each row's absolute change under rounded inputs, (rows, 1)."""
    with np.errstate(all="ignore"):
        change = np.abs(as_rows(perturbed) - as_rows(oracle))
    change = np.where(as_rows(mask) & np.isfinite(change), change, 0.0)
    return np.asarray(change.max(axis=1, keepdims=True, initial=0.0))


def special_mismatch(
    got: HostArray, oracle: HostArray, at_dtype: HostArray | None, allowed: float = 0.0
) -> npt.NDArray[np.int64]:
    """Return flat indices where NaN or ±infinity stand where they must not, or are missing.

    Where the oracle, rounded to the dtype, and the reference at its dtype disagree (an intermediate result of the
    reference overflowed), and within `allowed` of the dtype's greatest number, nothing is judged.
    """
    kind = DTYPES[dtype_name(got.dtype)].kind
    if kind not in "fc":
        return np.zeros(0, np.int64)
    with np.errstate(all="ignore"):
        expected = oracle.astype(got.dtype)
    wrong = ~_same_special(got, expected)
    if at_dtype is not None:
        wrong &= _same_special(at_dtype, expected)
    if wrong.any():
        largest = _largest(dtype_name(got.dtype))
        margin = min(0.5, max(2.0 * allowed, 4.0 * DTYPES[dtype_name(got.dtype)].eps))
        with np.errstate(all="ignore"):
            near = np.abs(oracle) > largest * (1.0 - margin)
        wrong &= ~(near & ~np.isnan(got) & np.isfinite(oracle))
    return np.flatnonzero(wrong)


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
