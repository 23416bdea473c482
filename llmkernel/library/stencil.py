"""Explicit steps of the heat equation on a grid; Jacobi's iteration is the case alpha = 1/4."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from llmkernel.library.entry import Array, Entry, Scalar


def _around(u: Array, mode: str) -> Array:
    p = np.pad(u, 1) if mode == "constant" else np.pad(u, 1, mode="wrap")
    y: Array = p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:]
    return y


def _heat(mode: str, *, is_rim_kept: bool = False) -> Callable[[Array, float, int], Array]:
    def heat(u: Array, alpha: float, steps: int) -> Array:
        v = np.array(u)
        for _ in range(steps if v.size else 0):
            around = _around(v, mode)
            w = alpha * around if alpha == 0.25 else v + alpha * (around - 4 * v)
            if is_rim_kept:
                w[[0, -1], :], w[:, [0, -1]] = v[[0, -1], :], v[:, [0, -1]]
            v = w
        return v

    return heat


_RIMS = {
    "fixed": (
        "Fixed",
        "the rim keeps its values",
        _heat("constant", is_rim_kept=True),
        ("fixed", "dirichlet", "edge"),
    ),
    "periodic": ("Periodic", "on a torus", _heat("wrap"), ("periodic", "roll", "torus", "wrap")),
    "zero": ("Zero", "zero beyond the rim", _heat("constant"), ("zero", "pad")),
}

ENTRIES = tuple(
    Entry(
        name=f"heat_{name}",
        title=f"steps of the heat equation, {title}",
        file="stencil.cu",
        reference=function,
        keywords=("heat", "diffusion", "jacobi", "laplac", "stencil", *keywords),
        tags=("stencil", "memory-bound"),
        header_words={"Fixed": rim},
        scalars={
            "alpha": Scalar(draw=lambda rng: float(rng.uniform(0.05, 0.3)), usual=(0.25, 0.1, 0.2)),
            "steps": Scalar(draw=lambda rng: int(rng.integers(1, 4)), usual=(1,)),
        },
    )
    for name, (rim, title, function, keywords) in _RIMS.items()
)
