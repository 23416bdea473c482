"""The difference between two sources."""

from __future__ import annotations

import difflib
from functools import lru_cache

from llmkernel.display.clean import cap
from llmkernel.display.markup import Markup, join, tag

MAX_CHARACTERS = 12_000
_MAX_INPUT = 60_000


@lru_cache(maxsize=4)
def diff_lines(old: str, new: str) -> tuple[str, ...]:
    """Return unified diff lines without file names; empty when nothing changed."""
    before, after = (cap(text, _MAX_INPUT).splitlines() for text in (old, new))
    return tuple(difflib.unified_diff(before, after, lineterm=""))[2:]


def diff_text(old: str, new: str, *, limit: int = MAX_CHARACTERS, where: str = "") -> str:
    """Return the diff as text, cut to `limit` characters."""
    return cap("\n".join(diff_lines(old, new)), limit, where)


def diff_summary(old: str, new: str) -> str:
    """Return ``+12 −3 lines``, or ``unchanged``."""
    lines = diff_lines(old, new)
    added = sum(line.startswith("+") for line in lines)
    removed = sum(line.startswith("-") for line in lines)
    return f"+{added} −{removed} lines" if added or removed else "unchanged"


def diff_html(old: str, new: str, *, limit: int = MAX_CHARACTERS, where: str = "") -> Markup:
    """Return the diff as a ``<pre>``; added and removed lines keep their ``+`` and ``-``."""
    text = diff_text(old, new, limit=limit, where=where)
    if not text:
        return tag("p", "The source is unchanged.")
    classes = {"+": "add", "-": "del", "@": "hunk"}
    lines = [tag("span", line, cls=classes.get(line[:1])) for line in text.split("\n")]
    return tag("pre", tag("code", join(lines, "\n")), cls="src", tabindex="0", aria_label="Changes")
