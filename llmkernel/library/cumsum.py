"""Prefix sums."""

from __future__ import annotations

from llmkernel.library.entry import Array, Entry


def cumsum(x: Array) -> Array:
    """Return the cumulative sum of every row of (M, N) `x`."""
    y: Array = x.cumsum(axis=-1)
    return y


ENTRIES = (
    Entry(
        name="cumsum",
        title="cumulative sum over the last axis",
        file="cumsum.cu",
        reference=cumsum,
        keywords=("cumsum", "cumulative", "prefix", "scan", "running"),
        tags=("scan", "memory-bound"),
        leading="M",
    ),
)
