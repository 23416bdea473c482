"""Whether an entry can take a problem's inputs at all: ranks, dtypes, scalars, in any order."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from llmkernel.library.entry import Array, Entry
from llmkernel.library.header_text import SignatureLine, Term
from llmkernel.library.probe import Leaf, Probe
from llmkernel.problem.dtypes import DTYPES, dtype_name


@dataclass(frozen=True)
class Fit:
    """One way to lay an entry over a problem's inputs.

    Attributes
    ----------
    line : SignatureLine
        Of the entry.
    order : tuple of int
        For each input of the problem, its place among the entry's inputs.
    axes : int
        Number of axes that the entry's leading dimension stands for.
    missing : tuple of str
        Scalars of the entry that are constants of the reference.
    dtype : str
        What the type variable stands for; empty where there is none.
    """

    line: SignatureLine
    order: tuple[int, ...]
    axes: int
    missing: tuple[str, ...]
    dtype: str


def fits(entry: Entry, probe: Probe, example: list[Array] | None) -> Iterator[Fit]:
    """Yield the ways in which ranks, dtypes, scalars and the example's shapes allow an entry.

    `example` is what the reference gives for small inputs, None where it takes none.
    """
    leaves = probe.leaves
    line = entry.signature
    if probe.changes_inputs or (example is not None and len(example) != len(line.outputs)):
        return
    arrays = [i for i, t in enumerate(line.inputs) if t.dims is not None]
    optional = [i for i, t in enumerate(line.inputs) if t.dims is None]
    if sum(leaf.shape is not None for leaf in leaves) != len(arrays) or len(leaves) < len(arrays):
        return
    given = len(leaves) - len(arrays)
    for scalars in itertools.combinations(optional, given) if given <= len(optional) else ():
        missing = tuple(line.inputs[i].name for i in optional if i not in scalars)
        if any(m not in entry.scalars for m in missing):
            continue
        for order in itertools.permutations((*arrays, *scalars)):
            if len(order) != len(leaves):
                continue
            terms = [line.inputs[i] for i in order]
            for axes in _axes_counts(entry, terms, leaves):
                dtype = _type_of(line, terms, leaves)
                if not _example_binds(entry, terms, leaves, axes):
                    continue
                if dtype is not None and _outputs_fit(entry, line, dtype, axes, example):
                    yield Fit(line, order, axes, missing, dtype)


def _axes_counts(entry: Entry, terms: Sequence[Term], leaves: Sequence[Leaf]) -> Iterator[int]:
    """Yield the number of axes that the leading dimension stands for; nothing when the ranks do not fit."""
    counts = set()
    for term, leaf in zip(terms, leaves, strict=True):
        if (term.dims is None) != (leaf.shape is None):
            return
        if term.dims is None or leaf.shape is None:
            continue
        if entry.leading in term.dims:
            counts.add(len(leaf.shape) - len(term.dims) + 1)
        elif len(leaf.shape) != len(term.dims):
            return
    if not counts:
        yield 1
    elif len(counts) == 1 and min(counts) >= 0:
        yield counts.pop()


def _example_binds(entry: Entry, terms: Sequence[Term], leaves: Sequence[Leaf], axes: int) -> bool:
    """Whether one size a dimension explains the example's shapes."""
    sizes: dict[str, tuple[int, ...]] = {}
    for term, leaf in zip(terms, leaves, strict=True):
        rest = leaf.shape or ()
        for dim in term.dims or ():
            count = axes if dim == entry.leading else 1
            if sizes.setdefault(dim, rest[:count]) != rest[:count]:
                return False
            rest = rest[count:]
    return True


def _type_of(line: SignatureLine, terms: Sequence[Term], leaves: Sequence[Leaf]) -> str | None:
    """Return the dtype that stands for ``T`` (empty without a type variable), or None."""
    bound: dict[str, str] = {}
    for term, leaf in zip(terms, leaves, strict=True):
        if term.dims is None:
            kinds = "iu" if DTYPES[term.dtype].kind in "iu" else "iuf"
            if DTYPES[leaf.dtype].kind not in kinds:
                return None
        elif term.dtype in line.types:
            if (
                leaf.dtype not in line.types[term.dtype]
                or bound.setdefault(term.dtype, leaf.dtype) != leaf.dtype
            ):
                return None
        elif term.dtype != leaf.dtype:
            return None
    return next(iter(bound.values()), "")


def _outputs_fit(
    entry: Entry, line: SignatureLine, dtype: str, axes: int, example: list[Array] | None
) -> bool:
    for term, result in zip(line.outputs, example or (), strict=False):
        dims = term.dims or ()
        expected = len(dims) + (axes - 1 if entry.leading in dims else 0)
        if result.ndim != expected or dtype_name(result.dtype) != (
            dtype if term.dtype in line.types else term.dtype
        ):
            return False
    return True
