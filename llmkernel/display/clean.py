"""Makes text from replies, headers, references and compilers safe to look at.

Everything that a report shows was written by somebody else: it may carry terminal escapes, characters that
reorder what one reads, or ten megabytes of compiler log.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Any

# CSI and OSC sequences, other two-byte escapes (ECMA-48), then a lone ESC.
_ANSI = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[@-Z\\-_]|\x1b|\x9b[0-?]*[ -/]*[@-~]"
)
# Bidirectional controls (Unicode UAX 9) and other invisible format characters: they can make code read
# differently from what it compiles to, so they are shown by their number.
_INVISIBLE = re.compile(
    "[\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")

# Narrow and no-break spaces stay: figures are grouped with them.
_SPACE = re.compile("[ \t\n]+")


def clean(text: Any) -> str:
    """Return `text` without terminal escapes and with invisible and control characters spelled out.

    Tabs and line feeds stay; carriage returns end a line.
    """
    value = _ANSI.sub("", str(text)).replace("\r\n", "\n").replace("\r", "\n")
    value = _INVISIBLE.sub(_spelled, value)
    return _CONTROL.sub(_spelled, value)


def _spelled(match: re.Match[str]) -> str:
    return f"[U+{ord(match.group()):04X}]"


def one_line(text: Any, limit: int = 400) -> str:
    """Return `text` cleaned, on one line and cut to `limit` characters."""
    raw = text if isinstance(text, str) else str(text)
    # Cut before cleaning: a cell of a table never pays for ten megabytes.
    value = _SPACE.sub(" ", clean(raw[: 4 * limit])).strip(" ")
    if len(value) > limit or len(raw) > 4 * limit:
        return value[: limit - 1].rstrip() + "…"
    return value


def cap(text: Any, limit: int, where: str = "") -> str:
    """Return `text` cleaned and cut to about `limit` characters, with a last line that says so.

    Parameters
    ----------
    text : str
    limit : int
        Characters that are kept.
    where : str
        Place of the full text, such as ``kernels/softmax/transcript.jsonl``.
    """
    raw = text if isinstance(text, str) else str(text)
    value = clean(raw[: 2 * limit])
    if len(raw) <= 2 * limit and len(value) <= limit:
        return value
    kept = value[:limit]
    if "\n" in kept[limit // 2 :]:
        kept = kept[: kept.rindex("\n")]
    left = max(0, len(raw) - len(kept))
    note = f"… {left:,} more characters".replace(",", " ")
    return f"{kept}\n{note}" + (f"; full text in {where}" if where else "")


def display_width(text: str) -> int:
    """Return the columns that `text` takes in a terminal."""
    width = 0
    for character in text:
        if unicodedata.combining(character):
            continue
        width += 2 if unicodedata.east_asian_width(character) in "WF" else 1
    return width
