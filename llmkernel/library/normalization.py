"""Norms of rows: RMS norm and layer norm."""

from __future__ import annotations

import numpy as np

from llmkernel.library.entry import Array, Entry, Scalar

EPS = Scalar(draw=lambda rng: float(rng.choice([1e-6, 1e-5, 1e-3])), usual=(1e-5, 1e-6, 1e-8, 1e-12, 0.0))


def rms_norm(x: Array, weight: Array, eps: float) -> Array:
    """Return (M, N) `x` over the root of its rows' mean squares, times (N,) `weight`."""
    y: Array = x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + eps) * weight
    return y


def layer_norm(x: Array, weight: Array, bias: Array, eps: float) -> Array:
    """Return (M, N) `x` with rows of mean 0 and variance 1, times (N,) `weight` plus (N,) `bias`."""
    centred = x - x.mean(axis=-1, keepdims=True)
    y: Array = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + eps) * weight + bias
    return y


ENTRIES = (
    Entry(
        name="rms_norm",
        title="RMS norm over the last axis, with a weight",
        file="rms_norm.cu",
        reference=rms_norm,
        keywords=("rms", "norm", "root mean square"),
        tags=("row", "memory-bound"),
        leading="M",
        scalars={"eps": EPS},
    ),
    Entry(
        name="layer_norm",
        title="layer norm over the last axis, with weight and bias",
        file="layer_norm.cu",
        reference=layer_norm,
        keywords=("layer norm", "layernorm", "normaliz"),
        tags=("row", "memory-bound"),
        leading="M",
        scalars={"eps": EPS},
    ),
)
