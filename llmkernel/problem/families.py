"""Input families: what values a draw holds.

Each family is one small function over a float array; integers and bool follow the range of the example instead. Seeds are
secret, and families are not described to a provider: a kernel must be right because it computes the function.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import ml_dtypes
import numpy as np
import numpy.typing as npt

from llmkernel.problem.arrays import HostArray
from llmkernel.problem.dtypes import DTYPES, dtype_name

Generator = np.random.Generator
Floats = npt.NDArray[np.float64]

# Of an array that several threads fill.
_SHARED_ELEMENTS = 1 << 20
_PARTS = 8

CROWDED = "crowded"
# With these, more than 2^16 of the elements of a long axis are one integer.
_CROWD = 0.97


@dataclass(frozen=True)
class Fill:
    """What a family is asked for.

    Attributes
    ----------
    rng : numpy.random.Generator
    shape : tuple of int
    largest, smallest : float
        Largest number and smallest normal number of the dtype.
    """

    rng: Generator
    shape: tuple[int, ...]
    largest: float
    smallest: float


@dataclass(frozen=True)
class Family:
    """A way to fill float arrays.

    Attributes
    ----------
    name : str
    why : str
        The mistake that it shows.
    fill : callable
        Returns a float64 array of the shape that it is asked for.
    is_special : bool
        Holds NaN, infinities or extremes, where the reference itself may have no meaning.
    is_exact : bool
        Holds small numbers with so few digits that they, and their sums and products, are exact: no rounding of the
        inputs excuses a result.
    """

    name: str
    why: str
    fill: Callable[[Fill], Floats]
    is_special: bool = False
    is_exact: bool = False


def _normal(f: Fill) -> Floats:
    # Single-precision draws are several times faster and lose nothing that a check could see.
    count = int(np.prod(f.shape, dtype=np.int64))
    if count < _SHARED_ELEMENTS:
        return f.rng.standard_normal(f.shape, dtype=np.float32).astype(np.float64)
    out = np.empty(count)
    # As many parts on every machine: a seed gives the same numbers everywhere.
    parts = np.array_split(out, _PARTS)

    def fill(part: Floats, rng: Generator) -> None:
        part[:] = rng.standard_normal(part.size, dtype=np.float32)

    with ThreadPoolExecutor(_PARTS) as pool:
        list(pool.map(fill, parts, f.rng.spawn(_PARTS)))
    return out.reshape(f.shape)


def _negated(f: Fill) -> Floats:
    return -np.abs(_normal(f))


def _positive(f: Fill) -> Floats:
    return np.abs(_normal(f))


def _large(f: Fill) -> Floats:
    return 3.0 * _normal(f)


def _small(f: Fill) -> Floats:
    return 0.01 * _normal(f)


def _shifted(f: Fill) -> Floats:
    return min(1e4, f.largest / 8) + f.rng.random(f.shape, dtype=np.float32).astype(np.float64)


def _heavy(f: Fill) -> Floats:
    bound = min(1e3, f.largest / 64)
    return np.clip(np.asarray(f.rng.standard_t(2.0, f.shape)), -bound, bound)


def _ramp(f: Fill) -> Floats:
    count = int(np.prod(f.shape, dtype=np.int64))
    if not count or not f.shape:
        return np.zeros(f.shape)
    # Of both signs, and no sum to 0: what a sum in float32 makes of cancellation is a matter of its order.
    rows = np.linspace(-1.0, 3.0, count).reshape(-1, f.shape[-1])
    # Each row goes on from another place: none is sorted, and its greatest elements are neighbours.
    start = f.rng.integers(0, rows.shape[1], (rows.shape[0], 1))
    return np.take_along_axis(rows, (np.arange(rows.shape[1]) + start) % rows.shape[1], axis=1).reshape(
        f.shape
    )


def _one_hot(f: Fill) -> Floats:
    out = np.zeros(f.shape)
    if out.size and out.ndim:
        rows = out.reshape(-1, f.shape[-1])
        # Rows that begin alike differ in their sum: one that was taken for another shows.
        heights = f.rng.integers(1, 9, rows.shape[0])
        rows[np.arange(rows.shape[0]), f.rng.integers(0, f.shape[-1], rows.shape[0])] = heights
    elif out.size:
        out[...] = 4.0
    return out


def _constant(f: Fill) -> Floats:
    return np.full(f.shape, 0.5 + f.rng.random())


def _zeros(f: Fill) -> Floats:
    return np.where(f.rng.random(f.shape) < 0.5, 0.0, -0.0)


def _integers(f: Fill) -> Floats:
    return f.rng.integers(-3, 4, f.shape).astype(np.float64)


def _halves(f: Fill) -> Floats:
    return f.rng.integers(-7, 8, f.shape) / 2.0


def _decimals(f: Fill) -> Floats:
    # Prices, percentages, hand-made tests: numbers that no continuous draw ever gives.
    steps = f.rng.choice(np.array([0.01, 0.1, 0.25]), f.shape)
    return np.asarray(f.rng.integers(-40, 41, f.shape) * steps)


def _spread(f: Fill) -> Floats:
    bound = min(1e3, f.largest / 8)
    return np.asarray(f.rng.uniform(-bound, bound, f.shape))


def _extremes(f: Fill) -> Floats:
    values = np.array([f.largest, -f.largest, f.largest / 2, 1.0, -1.0, f.smallest, 0.0, -0.0])
    return np.asarray(f.rng.choice(values, f.shape))


def _denormals(f: Fill) -> Floats:
    return np.asarray(f.rng.uniform(-f.smallest, f.smallest, f.shape))


def _infinite(f: Fill) -> Floats:
    out = _normal(f)
    out[f.rng.random(f.shape) < 0.02] = np.inf
    out[f.rng.random(f.shape) < 0.02] = -np.inf
    if out.ndim >= 2 and out.size:
        out.reshape(-1, f.shape[-1])[0] = -np.inf  # a fully masked row
    return out


def _not_a_number(f: Fill) -> Floats:
    out = _normal(f)
    out[f.rng.random(f.shape) < 0.02] = np.nan
    return out


FAMILIES: dict[str, Family] = {
    f.name: f
    for f in (
        Family("normal", "the ordinary case", _normal),
        Family("negated", "a kernel that is right for one sign only", _negated),
        Family("three times normal", "early exit, clipping", _large),
        Family("small", "an absolute tolerance or a flush built into the kernel", _small),
        Family("shifted by 1e4", "cancellation: variance as a difference of squares", _shifted),
        Family("heavy tails", "a kernel that drops elements, or a shortcut through statistics", _heavy),
        Family(
            "ramp", "elements taken in the wrong order, neighbours that are all among the greatest", _ramp
        ),
        Family("one-hot", "an element that is never read, a row that is taken for another", _one_hot),
        Family("constant", "division by a spread of zero", _constant),
        Family("zeros", "division by zero, log of zero, zeros of both signs told apart", _zeros),
        Family(
            "small integers",
            "exact for linear operators: any deviation is a mistake",
            _integers,
            is_exact=True,
        ),
        Family("halves", "ties: rounding to even, away from zero, or up", _halves, is_exact=True),
        Family("decimals", "a number that is treated apart, and that only people write", _decimals),
        Family(
            CROWDED, "counters that nearly all integers of a draw fall into, sums that only grow", _positive
        ),
        Family("spread to ±1e3", "overflow in an intermediate result", _spread),
        Family("extremes", "overflow that the reference does not have", _extremes, is_special=True),
        Family("denormals", "denormal numbers flushed to zero", _denormals, is_special=True),
        Family("infinities", "masked rows, infinity minus infinity", _infinite, is_special=True),
        Family("NaN", "NaN swallowed or spread", _not_a_number, is_special=True),
    )
}


def float_array(
    family: Family, rng: Generator, shape: tuple[int, ...], dtype: str, *, reduction: int = 1
) -> HostArray:
    """Fill an array of a float or complex dtype.

    Parameters
    ----------
    reduction : int
        Sums of this many elements must not overflow.

    Returns
    -------
    numpy.ndarray
        Of `shape` and `dtype`, rounded from float64.
    """
    target = DTYPES[dtype].numpy
    real = (
        np.dtype(np.float32)
        if dtype == "complex64"
        else np.dtype(np.float64)
        if dtype == "complex128"
        else target
    )
    info = ml_dtypes.finfo(real)
    largest, smallest = float(info.max), float(info.smallest_normal)
    if reduction > 1:
        largest /= 2.0 * reduction
    with np.errstate(all="ignore"):
        asked = Fill(rng, shape, largest, smallest)
        values = family.fill(asked)
        if DTYPES[dtype].kind == "c":
            return np.asarray(values + 1j * family.fill(asked)).astype(target)
        return values.astype(target)


def integer_array(
    rng: Generator,
    shape: tuple[int, ...],
    example: HostArray,
    bound: int | None,
    family: str = "normal",
    *,
    lowest: int | None = None,
) -> HostArray:
    """Draw integers or booleans over the range of the example.

    Parameters
    ----------
    example : numpy.ndarray
        The user's array; its least and greatest values limit the draw.
    bound : int or None
        Exclusive upper limit where the values index an axis whose size changed.
    family : str
        What float arrays of the same draw hold: integers are then sorted (``ramp``), all equal (``constant``), nearly all
        equal (``crowded``), as small as they may be (``zeros``), or the ends of the range (``extremes``).
    lowest : int or None
        Inclusive lower limit in place of the example's.
    """
    if example.dtype == np.bool_:
        share = {"constant": 1.0, "zeros": 0.0, CROWDED: _CROWD}.get(family, 0.5)
        return np.asarray(rng.random(shape) < share)
    low, high = (int(example.min()), int(example.max())) if example.size else (0, 3)
    low = low if lowest is None else lowest
    if bound is not None:
        high = min(max(0, bound - 1), int(np.iinfo(example.dtype).max))
        low = min(low, high)
    drawn = rng.integers(low, high, shape, dtype=example.dtype, endpoint=True)
    if family == "ramp":
        return np.asarray(np.sort(drawn, axis=None).reshape(shape))
    if family == "constant":
        return np.full_like(drawn, drawn.flat[0]) if drawn.size else drawn
    if family == CROWDED and drawn.size:
        return np.asarray(np.where(rng.random(shape) < _CROWD, drawn.flat[0], drawn))
    if family == "zeros":
        return np.full_like(drawn, min(max(low, 0), high))
    if family == "extremes":
        return np.asarray(rng.choice(np.array([low, high], example.dtype), shape))
    return drawn


def dtype_of(value: HostArray) -> str:
    """Return the header's name of a host array's dtype."""
    return dtype_name(value.dtype)
