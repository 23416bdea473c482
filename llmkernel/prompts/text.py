"""Text that goes into a prompt: delimited, cleaned, cut to a budget."""

from __future__ import annotations

import re

BYTES_PER_TOKEN = 3.5

_FENCE = re.compile(r"`{3,}|~{3,}")
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_FIRST_ERROR = re.compile(r"\b(?:error|fatal)\b", re.IGNORECASE)


def fenced(text: str, tag: str = "text") -> str:
    """Put `text`, unchanged, into a fence that is longer than any fence inside it."""
    longest = max((len(run) for run in _FENCE.findall(text)), default=2)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{tag}\n{text}{'' if text.endswith(chr(10)) else chr(10)}{fence}"


def clean(text: str) -> str:
    """Remove terminal colours and control characters, and replace what UTF-8 cannot carry."""
    text = _ANSI.sub("", text.replace("\r\n", "\n"))
    return encodable(_CONTROL.sub("", text))


def encodable(text: str) -> str:
    """Replace lone surrogates, which no request can carry."""
    return text.encode("utf-8", "replace").decode("utf-8")


def cut(text: str, limit: int) -> str:
    """Keep at most about `limit` characters: two thirds from the beginning, the rest from the end."""
    if len(text) <= limit:
        return text
    head = limit * 2 // 3
    tail = limit - head
    return f"{text[:head]}\n[… {len(text) - limit} characters left out …]\n{text[-tail:]}"


def cut_log(text: str, limit: int) -> str:
    """Cut a log so that its first errors stay."""
    if len(text) <= limit:
        return text
    match = _FIRST_ERROR.search(text)
    if match is None or match.start() < limit * 2 // 3:
        return cut(text, limit)
    # The place of an error stands at the beginning of its line.
    start = text.rfind("\n", 0, match.start()) + 1
    return f"[… {start} characters left out …]\n{cut(text[start:], limit)}"


def estimate_tokens(*texts: str) -> int:
    """Estimate tokens from UTF-8 bytes, right within about 30 % for code and prose."""
    size = sum(len(t.encode("utf-8", "replace")) for t in texts)
    return round(size / BYTES_PER_TOKEN) + 8 * len(texts)
