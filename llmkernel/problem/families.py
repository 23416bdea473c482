"""Input families: what values a draw holds.

Each family is one small function over a float array; integers and bool follow the range of the example instead. Seeds are
secret, and families are not described to a provider: a kernel must be right because it computes the function.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from llmkernel.problem.arrays import HostArray
from llmkernel.problem.dtypes import DTYPES, dtype_name

Generator = np.random.Generator
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Family:
    """A way to fill float arrays.

    Attributes
    ----------
    name : str
    why : str
        The mistake that it shows.
    fill : callable
        ``fill(rng, shape, largest, smallest) -> float64 array`` with the dtype's largest and smallest normal number.
    is_special : bool
        Holds NaN, infinities or extremes, where the reference itself may have no meaning.
    """

    name: str
    why: str
    fill: Callable[[Generator, tuple[int, ...], float, float], Floats]
    is_special: bool = False


def _normal(rng: Generator, shape: tuple[int, ...], largest: float, smallest: float) -> Floats:
    # Single-precision draws are several times faster and lose nothing that a check could see.
    return rng.standard_normal(shape, dtype=np.float32).astype(np.float64)


def _negated(rng: Generator, shape: tuple[int, ...], largest: float, smallest: float) -> Floats:
    return -np.abs(_normal(rng, shape, largest, smallest))


def _large(rng: Generator, shape: tuple[int, ...], largest: float, smallest: float) -> Floats:
    return 3.0 * _normal(rng, shape, largest, smallest)


def _small(rng: Generator, shape: tuple[int, ...], largest: float, smallest: float) -> Floats:
    return 0.01 * _normal(rng, shape, largest, smallest)


def _shifted(rng: Generator, shape: tuple[int, ...], largest: float, smallest: float) -> Floats:
    return min(1e4, largest / 8) + rng.random(shape, dtype=np.float32).astype(np.float64)


def _heavy(rng: Generator, shape: tuple[int, ...], largest: float, smallest: float) -> Floats:
    bound = min(1e3, largest / 64)
    return np.clip(np.asarray(rng.standard_t(2.0, shape)), -bound, bound)


def _ramp(rng: Generator, shape: tuple[int, ...], largest: float, smallest: float) -> Floats:
    count = int(np.prod(shape, dtype=np.int64))
    return np.linspace(-2.0, 2.0, count).reshape(shape) if count else np.zeros(shape)


def _one_hot(rng: Generator, shape: tuple[int, ...], largest: float, smallest: float) -> Floats:
    out = np.zeros(shape)
    if out.size and out.ndim:
        rows = out.reshape(-1, shape[-1])
        rows[np.arange(rows.shape[0]), rng.integers(0, shape[-1], rows.shape[0])] = 4.0
    elif out.size:
        out[...] = 4.0
    return out


def _constant(rng: Generator, shape: tuple[int, ...], largest: float, smallest: float) -> Floats:
    return np.full(shape, 0.5 + rng.random())


def _zeros(rng: Generator, shape: tuple[int, ...], largest: float, smallest: float) -> Floats:
    return np.zeros(shape)


def _integers(rng: Generator, shape: tuple[int, ...], largest: float, smallest: float) -> Floats:
    return rng.integers(-3, 4, shape).astype(np.float64)


def _spread(rng: Generator, shape: tuple[int, ...], largest: float, smallest: float) -> Floats:
    bound = min(1e3, largest / 8)
    return np.asarray(rng.uniform(-bound, bound, shape))


def _extremes(rng: Generator, shape: tuple[int, ...], largest: float, smallest: float) -> Floats:
    values = np.array([largest, -largest, largest / 2, 1.0, -1.0, smallest, 0.0, -0.0])
    return np.asarray(rng.choice(values, shape))


def _denormals(rng: Generator, shape: tuple[int, ...], largest: float, smallest: float) -> Floats:
    return np.asarray(rng.uniform(-smallest, smallest, shape))


def _infinite(rng: Generator, shape: tuple[int, ...], largest: float, smallest: float) -> Floats:
    out = _normal(rng, shape, largest, smallest)
    out[rng.random(shape) < 0.02] = np.inf
    out[rng.random(shape) < 0.02] = -np.inf
    if out.ndim >= 2 and out.size:
        out.reshape(-1, shape[-1])[0] = -np.inf  # a fully masked row
    return out


def _not_a_number(rng: Generator, shape: tuple[int, ...], largest: float, smallest: float) -> Floats:
    out = _normal(rng, shape, largest, smallest)
    out[rng.random(shape) < 0.02] = np.nan
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
        Family("ramp", "elements taken in the wrong order", _ramp),
        Family("one-hot", "an element that is never read", _one_hot),
        Family("constant", "division by a spread of zero", _constant),
        Family("zeros", "division by zero, log of zero", _zeros),
        Family("small integers", "exact for linear operators: any deviation is a mistake", _integers),
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
        values = family.fill(rng, shape, largest, smallest)
        if DTYPES[dtype].kind == "c":
            return np.asarray(values + 1j * family.fill(rng, shape, largest, smallest)).astype(target)
        return values.astype(target)


def integer_array(rng: Generator, shape: tuple[int, ...], example: HostArray, bound: int | None) -> HostArray:
    """Draw integers or booleans over the range of the example.

    Parameters
    ----------
    example : numpy.ndarray
        The user's array; its least and greatest values limit the draw.
    bound : int or None
        Exclusive upper limit where the values index an axis whose size changed.
    """
    if example.dtype == np.bool_:
        return np.asarray(rng.random(shape) < 0.5)
    low, high = (int(example.min()), int(example.max())) if example.size else (0, 3)
    if bound is not None:
        high = max(low, min(high, bound - 1)) if bound <= high else bound - 1
    return rng.integers(low, high, shape, dtype=example.dtype, endpoint=True)


def scalar_value(rng: Generator, example: Any, *, is_size: bool) -> Any:
    """Return another value of a scalar: a constant built into a kernel is seen no other way.

    Integers that stand for a size (they equal an axis, or bound one) stay as they are.
    """
    if isinstance(example, bool | np.bool_):
        return not example
    if isinstance(example, int | np.integer):
        return example if is_size else type(example)(int(example) + int(rng.integers(1, 3)))
    if isinstance(example, complex | np.complexfloating):
        return type(example)(complex(example) * complex(1.0 + rng.random(), rng.random()))
    return type(example)(float(example) * (1.25 + 0.5 * rng.random()) if example else 0.25 + rng.random())


def dtype_of(value: HostArray) -> str:
    """Return the header's name of a host array's dtype."""
    return dtype_name(value.dtype)
