"""Scalars of a draw: other values than the example's, and elements of the arrays that equal them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from llmkernel.problem.arrays import HostArray
from llmkernel.problem.dtypes import DTYPES, dtype_name
from llmkernel.problem.families import Generator

Change = Literal["none", "other", "far", "negated"]
# Integers up to here count something: steps, windows, neighbours.
_FEW = 16
_EQUAL = 0.05
# Multiples of a float scalar: a step that elements are rounded to lies halfway between some of them.
_MULTIPLES = np.array([1.0, 1.0, 0.5, 1.5, 2.5, -0.5, -1.5])
# Steps of an optimizer: where nothing is repeated so often, they cost nothing.
_THOUSANDS = (2000, 6000)


def scalar_value(
    rng: Generator, example: Any, change: Change = "other", *, is_size: bool, is_number: bool = False
) -> Any:
    """Return another value of a scalar: a constant built into a kernel is seen no other way.

    Integers that stand for a size (they equal an axis, or bound one) stay as they are.

    Parameters
    ----------
    change : str
        ``other``: another number of the same magnitude. ``far``: floats below 0.1 become 0.25 to 0.75, of the same
        sign, and integers from 1 to 16 become about a hundred, for iterations that a kernel limits. ``negated``:
        positive integers become negative.
    is_number : bool
        The reference only calculates with it: a ``far`` integer becomes some thousands.
    """
    if change == "none":
        return example
    if isinstance(example, bool | np.bool_):
        return not example
    if isinstance(example, int | np.integer):
        return example if is_size else type(example)(_integer(rng, example, change, is_number=is_number))
    if isinstance(example, complex | np.complexfloating):
        return type(example)(complex(example) * complex(1.0 + rng.random(), rng.random()))
    if change == "far" and abs(float(example)) < 0.1:
        return type(example)(math.copysign(0.25 + 0.5 * rng.random(), float(example)))
    return type(example)(
        _short(float(example) * (1.25 + 0.5 * rng.random()) if example else 0.25 + rng.random())
    )


def _short(value: float) -> float:
    """Round to eight significant bits: a number that arrays of every float dtype can hold."""
    if not math.isfinite(value):
        return value
    mantissa, exponent = math.frexp(value)
    return math.ldexp(round(mantissa * 256.0) / 256.0, exponent)


def can_be_negated(example: Any) -> bool:
    """Whether a scalar is a positive integer of a signed type."""
    is_integer = isinstance(example, int | np.integer) and not isinstance(example, bool)
    return is_integer and np.asarray(example).dtype.kind == "i" and int(example) > 0


def _integer(rng: Generator, example: int | np.integer[Any], change: Change, *, is_number: bool) -> int:
    value, step = int(example), int(rng.integers(1, 3))
    if change == "negated" and can_be_negated(example):
        return -value
    if change == "far" and is_number and 1 <= value <= _THOUSANDS[0] and _fits_type(example, _THOUSANDS[1]):
        return int(rng.integers(*_THOUSANDS))
    if change == "far" and 1 <= value <= _FEW:
        return int(rng.integers(80, 120))
    is_at_the_top = isinstance(example, np.integer) and value > np.iinfo(example.dtype).max - 2
    return value - step if is_at_the_top else value + step


def _fits_type(example: int | np.integer[Any], value: int) -> bool:
    return not isinstance(example, np.integer) or value <= np.iinfo(example.dtype).max


def with_scalars(rng: Generator, array: HostArray, scalars: Sequence[Any], bound: int | None) -> HostArray:
    """Return `array` with a twentieth of its elements equal to one of `scalars`: thresholds that are met, padding.

    Floats are also halves of a scalar, and odd multiples of that: ties of a quantization.

    Parameters
    ----------
    array : numpy.ndarray
    scalars : sequence
        Those are left out that the array's dtype does not hold exactly, and integers outside of the array's range.
        Where it holds no negative number and indexes no axis, a negative scalar is a mark, such as -1, and is taken.
    bound : int or None
        Size of the axis that an array of integers indexes.

    Returns
    -------
    numpy.ndarray
        `array` itself where no scalar fits.
    """
    fitting = [s for s in scalars if _fits(s, array, bound)]
    if not fitting:
        return array
    chosen = rng.choice(np.asarray(fitting).astype(array.dtype), array.shape)
    if DTYPES[dtype_name(array.dtype)].kind == "f":
        with np.errstate(all="ignore"):
            chosen = (chosen.astype(np.float64) * rng.choice(_MULTIPLES, array.shape)).astype(array.dtype)
    return np.asarray(np.where(rng.random(array.shape) < _EQUAL, chosen, array))


def _fits(scalar: Any, array: HostArray, bound: int | None) -> bool:
    kind = DTYPES[dtype_name(array.dtype)].kind
    if isinstance(scalar, bool | np.bool_ | complex | np.complexfloating) or not array.size:
        return False
    if not isinstance(scalar, int | np.integer):
        with np.errstate(all="ignore"):
            return kind == "f" and float(np.asarray(scalar).astype(array.dtype)) == float(scalar)
    if kind not in "iu":
        return False
    low, value = int(array.min()), int(scalar)
    is_mark = bound is None and np.iinfo(array.dtype).min <= value < 0 <= low
    return is_mark or low <= value <= int(array.max())
