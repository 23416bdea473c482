"""Softmax over the last axis."""

from __future__ import annotations

import numpy as np

from llmkernel.library.entry import Array, Entry


def softmax(x: Array) -> Array:
    """Return the softmax of (M, N) `x` over its last axis."""
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    total: Array = e / e.sum(axis=-1, keepdims=True)
    return total


ENTRIES = (
    Entry(
        name="softmax",
        title="softmax over the last axis",
        file="softmax.cu",
        reference=softmax,
        keywords=("softmax", "last axis", "rows", "attention"),
        tags=("row", "memory-bound"),
        leading="M",
    ),
)
