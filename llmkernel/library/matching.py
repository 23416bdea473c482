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

from llmkernel.library.drawing import Draw, draws
from llmkernel.library.entry import Array, Entry
from llmkernel.library.fitting import Fit, fits
from llmkernel.library.header_text import (
    Term,
    fix_scalar,
    read_signature,
    rename,
    reorder_inputs,
    spread_axes,
)
from llmkernel.library.probe import Probe
from llmkernel.problem.dtypes import DTYPES, dtype_name

MAX_CONSTANTS = 64
MAX_INTEGER = 1 << 20


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


def find_matches(probe: Probe, words: str, entries: Iterable[Entry]) -> list[Match]:
    """Return the entries that behave as the problem's reference does, the best first."""
    found = []
    example = probe.example_result()
    for entry in entries:
        best = None
        for fit in fits(entry, probe, example):
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


def _compare(entry: Entry, fit: Fit, probe: Probe, words: str) -> Match | None:
    evidence = list(draws(entry, fit, probe))
    if not evidence:
        return None
    best: tuple[bool, float] | None = None
    chosen: tuple[float, ...] = ()
    for constants in _constants(entry, fit, probe):
        outcome = _agreement(entry, fit, evidence, dict(zip(fit.missing, constants, strict=True)))
        if outcome is not None and (best is None or outcome < best):
            best, chosen = outcome, constants
    if best is None:
        return None
    fixed = dict(zip(fit.missing, chosen, strict=True))
    source, adaptations = _adapt(entry, fit, probe, fixed)
    score = keyword_score((*entry.keywords, entry.name.replace("_", " ")), words)
    return Match(entry.name, entry.title, source, best[1], not best[0], score, adaptations)


def _constants(entry: Entry, fit: Fit, probe: Probe) -> Iterator[tuple[float, ...]]:
    """Yield values for the scalars that the reference holds as constants."""
    options: list[Sequence[float]] = []
    for name in fit.missing:
        term = next(t for t in fit.line.inputs if t.name == name)
        is_integer = DTYPES[term.dtype].kind in "iu"
        values = dict.fromkeys((*probe.numbers(), *entry.scalars[name].usual))
        if is_integer:
            options.append(
                [v for v in values if isinstance(v, int) and 0 <= v <= MAX_INTEGER][:MAX_CONSTANTS]
            )
        else:
            options.append([float(v) for v in values][:MAX_CONSTANTS])
    yield from itertools.islice(itertools.product(*options), MAX_CONSTANTS * MAX_CONSTANTS)


def _agreement(
    entry: Entry, fit: Fit, evidence: Sequence[Draw], fixed: dict[str, float]
) -> tuple[bool, float] | None:
    """Return (differs on special values, largest relative error), or None where a draw disagrees."""
    worst, differs = 0.0, False
    finest = min(d.eps for d in evidence)
    for draw in evidence:
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


def _call(entry: Entry, fit: Fit, values: Sequence[Any]) -> Array | None:
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


def _folded(array: Array, term: Term, entry: Entry, fit: Fit) -> Array:
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


def _adapt(entry: Entry, fit: Fit, probe: Probe, fixed: dict[str, float]) -> tuple[str, tuple[str, ...]]:
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
    return rename(source, probe.problem.signature.name), tuple(dict.fromkeys(said))


def words_of(problem: Any) -> str:
    """Return the text in which keywords are looked for: intent, name and reference."""
    source = getattr(problem.reference, "source", "") or ""
    return re.sub(r"[_\s]+", " ", f"{problem.intent[:20000]} {problem.name} {source[:20000]}")
