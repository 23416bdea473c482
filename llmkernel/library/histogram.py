"""Counts of small integers."""

from __future__ import annotations

import numpy as np

from llmkernel.library.entry import Array, Entry, Scalar


def bincount(x: Array, bins: int) -> Array:
    """Return how often each of 0 … bins - 1 occurs in (N,) `x`; other numbers are refused."""
    counts = np.bincount(x, minlength=bins)
    if counts.size != bins:
        raise ValueError(f"a number is outside 0 … {bins - 1}")
    return counts.astype(np.int64)


ENTRIES = (
    Entry(
        name="bincount",
        title="histogram of small integers",
        file="histogram.cu",
        reference=bincount,
        keywords=("histogram", "bincount", "count", "bins"),
        tags=("histogram",),
        leading="N",
        scalars={"bins": Scalar(draw=lambda rng: int(rng.integers(5, 12)), usual=(256,))},
        integers=lambda rng, shape: rng.integers(0, 3, shape),
    ),
)
