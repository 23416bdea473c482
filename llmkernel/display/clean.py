"""Makes text from replies, headers, references and compilers safe to look at.

Everything that a report shows was written by somebody else: it may carry terminal escapes, characters that
reorder what one reads, or ten megabytes of compiler log.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Any

from llmkernel.prompts.redaction import redact

# CSI and OSC sequences, other two-byte escapes (ECMA-48), then a lone ESC.
_ANSI = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[@-Z\\-_]|\x1b|\x9b[0-?]*[ -/]*[@-~]"
)
# Bidirectional controls (Unicode UAX 9) and other invisible format characters can make code read differently from what
# it compiles to; controls and lone surrogates break hosts. All are shown by their number.
_RANGES = (
    (0x00, 0x08), (0x0B, 0x0C), (0x0E, 0x1F), (0x7F, 0x9F), (0x061C, 0x061C), (0x180E, 0x180E), (0x200B, 0x200F),
    (0x2028, 0x202E), (0x2060, 0x2069), (0xD800, 0xDFFF), (0xFEFF, 0xFEFF), (0xFFF9, 0xFFFB), (0xE0000, 0xE007F),
)  # fmt: skip
_ODD = re.compile("[" + "".join(f"{chr(low)}-{chr(high)}" for low, high in _RANGES) + "]")
_SPELLED = {code: f"[U+{code:04X}]" for low, high in _RANGES for code in range(low, high + 1)}
# Narrow and no-break spaces stay: figures are grouped with them.
_SPACE = re.compile("[ \t\n]+")
NO_BREAK = "\u00a0"
# Between a number and its unit, between the factors of a shape, and before a dot that separates.
_HELD = re.compile(
    r"(?<=\d) (?=(?:ns|µs|us|ms|s|min|h|B|[kMGT]i?B|[kMGT]?B/s|[GT]FLOP/s|eps|USD|million|billion|trillion|tokens)\b|[×%])"
    r"|(?<=[×≤≥<>]) (?=\d)| (?=·)"
)


def hold_together(text: str) -> str:
    """Return `text` with no-break spaces where a line must not end: ``5.4 s``, ``127 × 1023``."""
    return _HELD.sub(NO_BREAK, text)


def clean(text: Any) -> str:
    """Return `text` without secrets and terminal escapes, and with invisible and control characters spelled out.

    Tabs and line feeds stay; carriage returns end a line.
    """
    value = _ANSI.sub("", str(text)).replace("\r\n", "\n").replace("\r", "\n")
    value = value.translate(_SPELLED) if _ODD.search(value) else value
    return redact(value)


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
