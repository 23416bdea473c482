"""Chooses the guides that a prompt carries: by the words of the task, and by the architecture."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent / "knowledge"
MAX_GUIDES = 3


@dataclass(frozen=True)
class Guide:
    """One short guide.

    Attributes
    ----------
    name : str
        The file's name without its ending.
    keywords : tuple of str
        In lower case.
    archs : tuple of str
        Architectures that it is about, or ``any``; a guide with architectures is chosen by them alone.
    text : str
    """

    name: str
    keywords: tuple[str, ...]
    archs: tuple[str, ...]
    text: str


@cache
def guides() -> tuple[Guide, ...]:
    """Return all guides, sorted by name."""
    return tuple(_read(path) for path in sorted(FOLDER.glob("*.md")))


def _read(path: Path) -> Guide:
    head, _, text = path.read_text(encoding="utf-8").partition("\n\n")
    fields = {"keywords": "", "arch": ""}
    for line in head.splitlines():
        key, _, value = line.partition(":")
        fields[key] = value
    keywords = _words(fields["keywords"].lower())
    return Guide(path.stem, keywords, _words(fields["arch"]), text.strip())


def _words(value: str) -> tuple[str, ...]:
    return tuple(w.strip().strip('"') for w in value.split(",") if w.strip())


def choose_guides(task: str, arch: str) -> tuple[Guide, ...]:
    """Return at most `MAX_GUIDES` guides for the words of `task`, then those for `arch`.

    Parameters
    ----------
    task : str
        Intent, name and source of the reference.
    arch : str
        Such as ``sm_90a``, or ``host``.
    """
    words = task[:50_000].lower()
    scored = [(_score(g, words), g) for g in guides() if not g.archs]
    best = sorted((s, g) for s, g in ((-s, g.name) for s, g in scored) if s < 0)[:MAX_GUIDES]
    names = [name for _, name in best]
    by_name = {g.name: g for g in guides()}
    family = re.sub(r"[a-z]$", "", arch)
    return (*(by_name[n] for n in names), *(g for g in guides() if family in g.archs or "any" in g.archs))


def _score(guide: Guide, words: str) -> int:
    return sum(1 for k in guide.keywords if _stands_in(k, words))


def _stands_in(keyword: str, words: str) -> bool:
    if not keyword.replace("_", "").isalnum():
        return keyword in words
    # "layer_norm" and "row_sum" are two words each: an underscore ends a word here.
    return re.search(rf"(?<![a-z0-9]){re.escape(keyword)}(?![a-z0-9])", words) is not None
