"""Where a result is wrong, or was never written, as a picture small enough for a report.

Rows are the last axis but one, columns the last; further axes are one axis of matrices. Each axis is divided into at
most so many blocks, and each block has a digit: 0 where everything is right, 9 where everything is wrong, 1 to 8 by
the share of its elements that are wrong.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

ROWS = 24
COLUMNS = 64
MATRICES = 64
_CHUNK = 1 << 18


def error_map(
    shape: tuple[int, ...], wrong: Iterable[npt.NDArray[np.int64]], *, shows: str = "wrong"
) -> dict[str, Any] | None:
    """Return the picture as JSON data, at most 2 kB.

    Parameters
    ----------
    shape : tuple of int
        Of the result.
    wrong : iterable of numpy.ndarray
        Flat indices of wrong elements, each once.
    shows : str
        What these elements are: ``wrong`` or ``unwritten``.

    Returns
    -------
    dict or None
        ``shape``; ``shows``; ``cells``: one string of digits a block of rows; ``matrices``, where the result has three axes
        or more: one digit a block of matrices, `cells` then being of all matrices together. None for a result of at
        most one element.
    """
    size = math.prod(shape)
    if size < 2:
        return None
    columns = shape[-1]
    rows = shape[-2] if len(shape) > 1 else 1
    matrices = math.prod(shape[:-2])
    across, down, deep = min(columns, COLUMNS), min(rows, ROWS), min(matrices, MATRICES)
    cells = np.zeros(down * across, np.int64)
    stack = np.zeros(deep, np.int64)
    for part in wrong:
        for first in range(0, part.size, _CHUNK):
            line, column = np.divmod(part[first : first + _CHUNK], columns)
            matrix, row = np.divmod(line, rows)
            cells += np.bincount(
                row * down // rows * across + column * across // columns, minlength=cells.size
            )
            stack += np.bincount(matrix * deep // matrices, minlength=deep)
    per_cell = np.outer(_lengths(rows, down), _lengths(columns, across)).reshape(-1) * matrices
    digits = _digits(cells, per_cell)
    data: dict[str, Any] = {
        "shape": list(shape),
        "shows": shows,
        "cells": [digits[i : i + across] for i in range(0, len(digits), across)],
    }
    if len(shape) > 2:
        data["matrices"] = _digits(stack, _lengths(matrices, deep) * rows * columns)
    return data


def _lengths(size: int, blocks: int) -> npt.NDArray[np.int64]:
    """Return how many indices i of an axis fall into each block ``i * blocks // size``."""
    return np.bincount(np.arange(size, dtype=np.int64) * blocks // size, minlength=blocks)


def _digits(wrong: npt.NDArray[np.int64], total: npt.NDArray[np.int64]) -> str:
    some = 1 + 8 * wrong // np.maximum(total, 1)
    return "".join(map(str, np.where(wrong == 0, 0, np.where(wrong >= total, 9, np.minimum(some, 8)))))
