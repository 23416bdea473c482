"""Strides of arrays, in elements."""

from __future__ import annotations

from collections.abc import Sequence

from llmkernel.candidate.arguments import ArrayArgument


def contiguous_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Return C-contiguous strides in elements."""
    strides = [1] * len(shape)
    for i in range(len(shape) - 2, -1, -1):
        strides[i] = strides[i + 1] * max(shape[i + 1], 1)
    return tuple(strides)


def is_contiguous(array: ArrayArgument) -> bool:
    """Whether elements follow each other in C order; strides of axes of size 1 do not matter."""
    if array.strides is None or 0 in array.shape:
        return True
    expected = contiguous_strides(array.shape)
    return all(n == 1 or s == e for n, s, e in zip(array.shape, array.strides, expected, strict=True))
