"""Transposes."""

from __future__ import annotations

from llmkernel.library.entry import Array, Entry


def transpose(x: Array) -> Array:
    """Return (B, M, N) `x` with its last two axes exchanged."""
    return x.swapaxes(-1, -2)


ENTRIES = (
    Entry(
        name="transpose",
        title="transpose of the last two axes",
        file="transpose.cu",
        reference=transpose,
        keywords=("transpose", "swap", "permute", "layout"),
        tags=("layout", "memory-bound"),
        leading="B",
    ),
)
