"""Matrix products: batches, rows times one matrix, and with the second matrix turned."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from llmkernel.library.entry import Array, Entry


def matmul(a: Array, b: Array) -> Array:
    """Return the products of (B, M, K) or (M, K) `a` and (B, K, N) or (K, N) `b`."""
    c: Array = np.matmul(a, b)
    return c


def matmul_turned(a: Array, b: Array) -> Array:
    """Return the products of (B, M, K) or (M, K) `a` and the transpose of (B, N, K) or (N, K) `b`."""
    c: Array = np.matmul(a, b.swapaxes(-1, -2))
    return c


_TURNED = {"b: T[B, K, N]": "b: T[B, N, K]", "Plain": "Turned"}

# name: title, reference, header words, leading dimension, dimension left out, keywords
_FORMS: dict[
    str, tuple[str, Callable[[Array, Array], Array], dict[str, str], str, str | None, tuple[str, ...]]
] = {
    "matmul": ("matrix product", matmul, {}, "B", None, ("batch",)),
    "matmul_turned": (
        "matrix product with a transpose",
        matmul_turned,
        _TURNED,
        "B",
        None,
        ("transpose", "scores"),
    ),
    "rows_matmul": ("rows times one matrix", matmul, {}, "M", "B", ("project",)),
    "linear": (
        "linear layer without bias",
        matmul_turned,
        _TURNED,
        "M",
        "B",
        ("linear", "weight", "project"),
    ),
}
_FILES = {
    "": ("matmul.cu", "float32 or float64, without tensor cores", ("compute-bound",)),
    "_half": ("matmul_half.cu", "16-bit floats on tensor cores", ("compute-bound", "tensor cores")),
}

ENTRIES = tuple(
    Entry(
        name=name + suffix,
        title=f"{title}, {how}",
        file=file,
        reference=reference,
        keywords=("matmul", "matrix", "product", "gemm", *keywords),
        tags=tags,
        leading=leading,
        header_words=words,
        without=without,
    )
    for suffix, (file, how, tags) in _FILES.items()
    for name, (title, reference, words, leading, without, keywords) in _FORMS.items()
)
