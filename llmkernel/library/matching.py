"""Finds the library kernels that behave as a problem's reference does.

Words only break ties. An entry fits when ranks, dtypes and scalars fit and its own NumPy reference agrees
with the user's on small random inputs, in float64 where the user's takes it: near neighbours (two GELUs, two
values of eps) lie far outside the rounding error there.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil, log10
from typing import Any

import numpy as np

from llmkernel.library.entry import Array, Entry
from llmkernel.library.header_text import (
    SignatureLine,
    Term,
    fix_scalar,
    read_signature,
    rename,
    reorder_inputs,
    spread_axes,
)
from llmkernel.library.probe import MAX_EXAMPLE_ELEMENTS, Leaf, Probe, draw_array
from llmkernel.problem.dtypes import DTYPES, dtype_name

MAX_CONSTANTS = 64
_SIZES = ((5, 7, 6, 3, 4), (2, 19, 3, 5, 2), (9, 4, 8, 2, 3))
# (scale, shift): small values show an eps, large ones a saturation, shifted ones a centring.
_FAMILIES = ((1.0, 0.0), (4.0, -1.0), (3e-3, 0.0), (1.0, 50.0))
_SPECIAL = ((np.nan, 0.3), (np.inf, 0.6), (-np.inf, 0.9))


@dataclass(frozen=True)
class Match:
    """A library kernel that behaves as the reference does.

    Attributes
    ----------
    name : str
        Of the entry.
    title : str
    source : str
        The `.cu` text, adapted to the problem's name, ranks, order of inputs and constants.
    error : float
        Largest difference found, relative to the largest expected magnitude.
    agrees_on_special : bool
        NaN and infinities stand at the same places.
    score : int
        Keywords of the entry that stand in the intent or reference.
    adaptations : tuple of str
        What was changed in the text, for a person.
    is_own : bool
        From the user's library.
    """

    name: str
    title: str
    source: str
    error: float
    agrees_on_special: bool
    score: int
    adaptations: tuple[str, ...] = ()
    is_own: bool = False

    @property
    def rank(self) -> tuple[Any, ...]:
        """Sort key, the best first: differences count by their order of magnitude only."""
        magnitude = -12 if self.error < 1e-12 else ceil(log10(self.error))
        return (not self.agrees_on_special, magnitude, -self.score, not self.is_own, self.name)


@dataclass(frozen=True)
class _Fit:
    """One way to lay an entry over the problem's inputs."""

    line: SignatureLine
    order: tuple[int, ...]  # place in the entry's inputs of each input of the problem
    axes: int
    missing: tuple[str, ...]  # scalars that are constants of the reference
    dtype: str


def find_matches(probe: Probe, words: str, entries: Iterable[Entry]) -> list[Match]:
    """Return the entries that behave as the problem's reference does, the best first."""
    found = []
    example = probe.example_result()
    for entry in entries:
        best = None
        for fit in _fits(entry, probe, example):
            match = _compare(entry, fit, probe, words)
            if match is not None and (best is None or match.rank < best.rank):
                best = match
        if best is not None:
            found.append(best)
    return sorted(found, key=lambda m: m.rank)


def keyword_score(keywords: Sequence[str], words: str) -> int:
    """Count the keywords that stand in `words`."""
    text = words.casefold()
    return sum(1 for k in keywords if k.casefold() in text)


def _fits(entry: Entry, probe: Probe, example: list[Array] | None) -> Iterator[_Fit]:
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
                    yield _Fit(line, order, axes, missing, dtype)


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


def _compare(entry: Entry, fit: _Fit, probe: Probe, words: str) -> Match | None:
    draws = list(_draws(entry, fit, probe))
    if not draws:
        return None
    best: tuple[bool, float] | None = None
    chosen: tuple[float, ...] = ()
    for constants in _constants(entry, fit, probe):
        outcome = _agreement(entry, fit, draws, dict(zip(fit.missing, constants, strict=True)))
        if outcome is not None and (best is None or outcome < best):
            best, chosen = outcome, constants
    if best is None:
        return None
    fixed = dict(zip(fit.missing, chosen, strict=True))
    source, adaptations = _adapt(entry, fit, probe, fixed)
    score = keyword_score((*entry.keywords, entry.name.replace("_", " ")), words)
    return Match(entry.name, entry.title, source, best[1], not best[0], score, adaptations)


@dataclass(frozen=True)
class _Draw:
    inputs: tuple[Any, ...]  # in the order of the entry's inputs, missing scalars None
    expected: Array
    eps: float  # of the coarser of working and result dtype; 0 for integers
    is_special: bool

    @property
    def tolerance(self) -> float:
        return max(1e-5, 30 * self.eps) if self.eps else 0.0


def _draws(entry: Entry, fit: _Fit, probe: Probe) -> Iterator[_Draw]:
    """Yield inputs with the user's results, in the working dtype and in float64; small sizes first."""
    names = _dimension_names(fit.line)
    shapes = [dict(zip(names, sizes, strict=False)) for sizes in _SIZES]
    is_float = fit.dtype == "" or DTYPES[fit.dtype].kind == "f"
    families = [(family, False) for family in _FAMILIES] + ([((1.0, 0.0), True)] if is_float else [])
    dtypes = dict.fromkeys((fit.dtype, "float64" if is_float and fit.dtype else fit.dtype))
    made = False
    for sizes in (*shapes, None):
        if sizes is None:
            own = None if made else _example_sizes(fit, probe)
            if own is None:
                return
            sizes = own
        for (family, is_special), dtype in itertools.product(families, dtypes):
            draw = _draw(entry, fit, probe, sizes, family, dtype, is_special=is_special)
            if draw is not None:
                made = True
                yield draw


def _draw(
    entry: Entry,
    fit: _Fit,
    probe: Probe,
    sizes: dict[str, int],
    family: tuple[float, float],
    dtype: str,
    *,
    is_special: bool,
) -> _Draw | None:
    rng = np.random.default_rng([len(str(sizes)), *sizes.values(), int(abs(family[1])), int(is_special)])
    inputs: list[Any] = []
    for term in fit.line.inputs:
        if term.dims is None:
            scalar = entry.scalars.get(term.name)
            inputs.append(None if term.name in fit.missing or scalar is None else scalar.draw(rng))
            continue
        shape = tuple(n for d in term.dims for n in _sizes_of(d, entry, fit, sizes))
        kind = dtype if term.dtype in fit.line.types else term.dtype
        if entry.integers is not None and DTYPES[kind].kind in "iu":
            array = entry.integers(rng, shape).astype(DTYPES[kind].numpy)
        else:
            array = draw_array(rng, kind, shape, *family)
        if is_special and array.size:
            for value, place in _SPECIAL:
                array.reshape(-1)[int(place * (array.size - 1))] = value
        inputs.append(array)
    given = [inputs[i] for i in fit.order]
    key = (
        fit.order,
        tuple(getattr(g, "shape", ("scalar", g)) for g in given),
        family,
        dtype,
        is_special,
        entry.integers,
    )
    results = probe.run(key, [g.copy() if isinstance(g, np.ndarray) else g for g in given])
    if results is None or len(results) != 1 or results[0].dtype.kind == "O":
        return None
    result = results[0]
    name = dtype_name(result.dtype)
    working = max(DTYPES[name].eps, DTYPES[dtype].eps if dtype else 0.0)
    return _Draw(tuple(inputs), result, working, is_special)


def _sizes_of(dim: str, entry: Entry, fit: _Fit, sizes: dict[str, int]) -> tuple[int, ...]:
    if dim == entry.leading and fit.axes != 1:
        # The axes that the leading dimension stands for: the product is what the entry's reference sees.
        return tuple(sizes[dim] + i for i in range(fit.axes))
    return (int(dim) if dim.isdigit() else sizes[dim],)


def _dimension_names(line: SignatureLine) -> list[str]:
    dims = (d for t in line.inputs for d in t.dims or ())
    return list(dict.fromkeys(d for d in dims if not d.isdigit()))


def _example_sizes(fit: _Fit, probe: Probe) -> dict[str, int] | None:
    """Return the example's own sizes, where they are small enough to compute with."""
    if (
        fit.axes != 1
        or sum(int(np.prod(leaf.shape)) for leaf in probe.leaves if leaf.shape) > MAX_EXAMPLE_ELEMENTS
    ):
        return None
    sizes: dict[str, int] = {}
    for place, leaf in zip(fit.order, probe.leaves, strict=True):
        for dim, n in zip(fit.line.inputs[place].dims or (), leaf.shape or (), strict=True):
            if sizes.setdefault(dim, n) != n:
                return None
    return sizes


def _constants(entry: Entry, fit: _Fit, probe: Probe) -> Iterator[tuple[float, ...]]:
    """Yield values for the scalars that the reference holds as constants."""
    options = []
    for name in fit.missing:
        term = next(t for t in fit.line.inputs if t.name == name)
        is_integer = DTYPES[term.dtype].kind in "iu"
        values = dict.fromkeys((*probe.numbers(), *entry.scalars[name].usual))
        options.append([v for v in values if isinstance(v, int) or not is_integer][:MAX_CONSTANTS])
        if not is_integer:
            options[-1] = [float(v) for v in options[-1]]
    yield from itertools.islice(itertools.product(*options), MAX_CONSTANTS * MAX_CONSTANTS)


def _agreement(
    entry: Entry, fit: _Fit, draws: Sequence[_Draw], fixed: dict[str, float]
) -> tuple[bool, float] | None:
    """Return (differs on special values, largest relative error), or None where a draw disagrees."""
    worst, differs = 0.0, False
    finest = min(d.eps for d in draws)
    for draw in draws:
        values = [fixed.get(t.name, v) for t, v in zip(fit.line.inputs, draw.inputs, strict=True)]
        got = _call(entry, fit, values)
        if got is None or got.size != draw.expected.size:
            return None
        got = got.reshape(draw.expected.shape)
        if draw.is_special:
            differs = differs or not _stand_alike(got, draw.expected)
            continue
        error = relative_error(got, draw.expected)
        if not error <= draw.tolerance:
            return None
        # Rounding errors of narrow dtypes say nothing of which neighbour it is: the widest draws decide.
        if draw.eps == finest:
            worst = max(worst, error)
    return differs, worst


def _call(entry: Entry, fit: _Fit, values: Sequence[Any]) -> Array | None:
    arguments = []
    for term, value in zip(fit.line.inputs, values, strict=True):
        if isinstance(value, np.ndarray):
            kept = value.astype(np.float64) if DTYPES[dtype_name(value.dtype)].kind == "f" else value
            arguments.append(_folded(kept, term, entry, fit))
        else:
            arguments.append(value)
    with np.errstate(all="ignore"):
        try:
            return np.asarray(entry.reference(*arguments))
        except (ValueError, OverflowError, IndexError):  # such as a size that only the user's reference takes
            return None


def _folded(array: Array, term: Term, entry: Entry, fit: _Fit) -> Array:
    """Fold the axes of the leading dimension into one, which is what the entry's reference takes."""
    dims = term.dims or ()
    if fit.axes == 1 or entry.leading not in dims:
        return array
    at = dims.index(str(entry.leading))
    shape = array.shape
    return array.reshape(*shape[:at], int(np.prod(shape[at : at + fit.axes])), *shape[at + fit.axes :])


def relative_error(got: Array, expected: Array) -> float:
    """Return the largest difference over the largest expected magnitude; infinite where NaN or infinities differ."""
    a, b = _widest(got), _widest(expected)
    finite = np.isfinite(a) & np.isfinite(b)
    if not np.array_equal(a[~finite], b[~finite], equal_nan=True):
        return float("inf")
    if not finite.any():
        return 0.0
    scale = float(np.abs(b[finite]).max()) or 1e-30
    return float(np.abs(a[finite] - b[finite]).max()) / scale


def _widest(array: Array) -> Array:
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def _stand_alike(got: Array, expected: Array) -> bool:
    a, b = _widest(got), _widest(expected)
    return bool(np.array_equal(np.isnan(a), np.isnan(b)) and np.array_equal(a[np.isinf(a)], b[np.isinf(b)]))


def _adapt(entry: Entry, fit: _Fit, probe: Probe, fixed: dict[str, float]) -> tuple[str, tuple[str, ...]]:
    source, said = entry.source, []
    places = {term.name: i for i, term in enumerate(fit.line.inputs)}
    for name, value in fixed.items():
        source = fix_scalar(source, name, value)
        said.append(f"{name} = {value!r}, a constant of the reference")
    kept = [places[t.name] for t in read_signature(source).inputs]
    order = [kept.index(i) for i in fit.order]
    if order != sorted(order):
        source = reorder_inputs(source, order)
        said.append("inputs in the order of the reference")
    if fit.axes != 1 and entry.leading is not None:
        source = spread_axes(source, entry.leading, fit.axes)
        said.append(f"{entry.leading} stands for {fit.axes} axes")
    return rename(source, probe.problem.name), tuple(dict.fromkeys(said))


def words_of(problem: Any) -> str:
    """Return the text in which keywords are looked for: intent, name and reference."""
    source = getattr(problem.reference, "source", "") or ""
    return re.sub(r"[_\s]+", " ", f"{problem.intent[:20000]} {problem.name} {source[:20000]}")
