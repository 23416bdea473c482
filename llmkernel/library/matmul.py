"""Matrix products."""

from __future__ import annotations

import numpy as np

from llmkernel.library.entry import Array, Entry


def matmul(a: Array, b: Array) -> Array:
    """Return the products of (B, M, K) `a` and (B, K, N) `b`."""
    c: Array = np.matmul(a, b)
    return c


ENTRIES = (
    Entry(
        name="matmul",
        title="matrix product, float32 or float64, without tensor cores",
        file="matmul.cu",
        reference=matmul,
        keywords=("matmul", "matrix", "product", "gemm"),
        tags=("compute-bound",),
        leading="B",
    ),
    Entry(
        name="matmul_half",
        title="matrix product of 16-bit floats on tensor cores",
        file="matmul_half.cu",
        reference=matmul,
        keywords=("matmul", "matrix", "product", "gemm"),
        tags=("compute-bound", "tensor cores"),
        leading="B",
    ),
)
