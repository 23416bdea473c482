"""What a plan needs to know of the arguments of one call, without touching their contents."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ArrayArgument:
    """An array as the launch header sees it.

    Attributes
    ----------
    dtype : str
        NumPy name.
    shape : tuple of int
    strides : tuple of int or None
        In elements; None for C-contiguous.
    address : int
        Device address (or its remainder modulo 4096), for ``aligned(x, 16)`` and ``tma_ok(x)``.
    """

    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None = None
    address: int = 0


@dataclass(frozen=True)
class ScalarValue:
    """A scalar as the caller passed it; the header's declared dtype decides what it must fit."""

    value: bool | int | float | complex


CallArgument = ArrayArgument | ScalarValue
