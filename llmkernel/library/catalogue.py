"""The list of everything that the package brings."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from llmkernel.library.entry import Entry

MODULES = (
    "softmax",
    "normalization",
    "elementwise",
    "reductions",
    "cumsum",
    "transpose",
    "matmul",
    "histogram",
    "stencil",
)


@cache
def shipped_entries() -> tuple[Entry, ...]:
    """Return the package's own entries, by file and then in the order of their file."""
    found: list[Entry] = []
    for module in MODULES:
        found.extend(import_module(f"llmkernel.library.{module}").ENTRIES)
    return tuple(found)


def entry(name: str) -> Entry:
    """Return the entry called `name`; KeyError when there is none."""
    for e in shipped_entries():
        if e.name == name:
            return e
    raise KeyError(name)
