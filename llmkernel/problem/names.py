"""Python's names as a launch header can write them: a reference may use any script, and words that the header needs."""

from __future__ import annotations

import re
from collections.abc import Sequence

from llmkernel.problem.dtypes import DTYPES

# The header's grammar: docs/reference/launch-header.md; Python's keywords cannot be parameters to begin with.
_WORDS = frozenset(
    (
        *(
            "num_sms",
            "max_shared_bytes",
            "repeat_index",
            "inout",
            "strided",
            "true",
            "false",
            "tensor_map",
            "cooperative",
            "cluster",
            "where",
        ),
        *("min", "max", "ceil_div", "sizeof", "aligned", "tma_ok"),
    )
)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def header_name(name: str, otherwise: str = "kernel") -> str:
    """Return `name` where a header can hold it, else one like it, else `otherwise`.

    Examples
    --------
    >>> header_name("softmax"), header_name("max"), header_name("удвоить")
    ('softmax', 'max_', 'kernel')
    """
    if not _NAME.fullmatch(name):
        return otherwise
    return f"{name}_" if name in _WORDS or name in DTYPES else name


def header_names(parameters: Sequence[str]) -> tuple[str, ...]:
    """Return a header's names for the parameters of a reference, each different from the others.

    Examples
    --------
    >>> header_names(("x", "min", "max", "вес"))
    ('x', 'min_', 'max_', 'x3')
    """
    names: list[str] = []
    kept = {p for p in parameters if header_name(p, "") == p}
    for i, parameter in enumerate(parameters):
        name = header_name(parameter, f"x{i}")
        while name in names or (name != parameter and name in kept):
            name += "_"
        names.append(name)
    return tuple(names)
