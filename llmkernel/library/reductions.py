"""Reductions of every row, of every column, and of a whole array."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from llmkernel.library.entry import Array, Entry


def _norm(x: Array) -> Array:
    y: Array = np.sqrt((x * x).sum(axis=-1))
    return y


# name: operation in the launch header, title, NumPy over the last axis, keywords
_OPERATIONS: dict[str, tuple[str, str, Callable[[Array], Array], tuple[str, ...]]] = {
    "sum": ("Sum", "sum", lambda x: x.sum(axis=-1), ("sum", "total")),
    "mean": ("Mean", "mean", lambda x: x.mean(axis=-1), ("mean", "average")),
    "max": ("Largest", "maximum", lambda x: x.max(axis=-1), ("max", "largest")),
    "min": ("Smallest", "minimum", lambda x: x.min(axis=-1), ("min", "smallest")),
    "squared_sum": ("SquaredSum", "sum of squares", lambda x: (x * x).sum(axis=-1), ("squares", "energy")),
    "mean_square": ("MeanSquare", "mean of squares", lambda x: (x * x).mean(axis=-1), ("mean square",)),
    "norm": ("Norm", "Euclidean norm", _norm, ("norm", "length", "l2")),
}


def _over_columns(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    return lambda x: function(x.T)


ENTRIES = (
    *(
        Entry(
            name=f"row_{name}",
            title=f"{title} of every row",
            file="row_reduce.cu",
            reference=function,
            keywords=(*keywords, "row", "axis"),
            tags=("reduction", "memory-bound"),
            leading="M",
            header_words={"Sum": operation},
        )
        for name, (operation, title, function, keywords) in _OPERATIONS.items()
    ),
    *(
        Entry(
            name=f"column_{name}",
            title=f"{title} of every column",
            file="column_reduce.cu",
            reference=_over_columns(function),
            keywords=(*keywords, "column", "axis"),
            tags=("reduction", "memory-bound"),
            leading="N",
            header_words={"Sum": operation},
        )
        for name, (operation, title, function, keywords) in _OPERATIONS.items()
    ),
    *(
        Entry(
            name=f"total_{name}",
            title=f"{title} of all elements",
            file="row_reduce.cu",
            reference=function,
            keywords=(*keywords, "all"),
            tags=("reduction", "memory-bound"),
            leading="N",
            header_words={"Sum": operation},
            without="M",
        )
        for name, (operation, title, function, keywords) in _OPERATIONS.items()
    ),
)
