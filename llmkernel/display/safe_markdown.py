"""Markdown that a model wrote, made so that it loads nothing and brings no HTML into the notebook."""

from __future__ import annotations

import re

from llmkernel.display.clean import clean

_FENCE = re.compile(
    r"^(?P<prefix>[ \t]*(?:>[ \t]?)*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*)(?P<fence>`{3,}|~{3,})(?P<info>.*)$"
)
_QUOTED = re.compile(r"^[ \t]*(?:>[ \t]?)+")
_TAG = re.compile(r"<(?=[A-Za-z/!?])")
_WORD = re.compile(r"[\w+#-]+")


def safe_markdown(text: str) -> str:
    """Return Markdown without HTML and images; what stands in code stays as it is.

    An image would send what stands in its address to a stranger as soon as the answer is shown. Code blocks are
    written anew at the margin, also those of lists and quotations, and each is closed: no two readers of
    Markdown can then disagree about where code ends.
    """
    made: list[str] = []
    code: list[str] = []
    opening: re.Match[str] | None = None
    for line in clean(text).split("\n"):
        found = _FENCE.match(line)
        if opening is not None:
            if found and not found["info"].strip() and found["fence"].startswith(opening["fence"]):
                made += _block(opening, code)
                opening, code = None, []
            else:
                code.append(line)
        elif found and not (found["fence"][0] == "`" and "`" in found["info"]):
            opening = found
        else:
            made.append(_prose(line))
    if opening is not None:
        made += _block(opening, code)
    return "\n".join(made)


def _block(opening: re.Match[str], lines: list[str]) -> list[str]:
    prefix = opening["prefix"]
    if ">" in prefix:
        lines = [_QUOTED.sub("", line, count=1) for line in lines]
    else:
        lines = [line[min(len(prefix), len(line) - len(line.lstrip(" \t"))) :] for line in lines]
    fence = "`" * max([2, *(len(run) for run in re.findall("`+", "\n".join(lines)))]) + "`"
    word = _WORD.search(opening["info"])
    # Of the words after a fence only the first is a language.
    return [fence + (word[0] if word else ""), *lines, fence]


def _prose(line: str) -> str:
    """Return a line in which only whole code spans keep their backticks."""
    pieces: list[str] = []
    place = 0
    while (start := line.find("`", place)) >= 0:
        length = len(line) - start - len(line[start:].lstrip("`"))
        before = line[place:start]
        if (len(before) - len(before.rstrip("\\"))) % 2:
            # An escaped backtick opens nothing; the others of its run may.
            pieces += [_inert(before[:-1]), "&#96;"]
            place = start + 1
            continue
        end = re.search(rf"(?<!`)`{{{length}}}(?!`)", line[start + length :])
        if end:
            place = start + length + end.end()
            pieces += [_inert(before), line[start:place]]
        else:
            pieces += [_inert(before), "&#96;" * length]
            place = start + length
    return "".join([*pieces, _inert(line[place:])])


def _inert(text: str) -> str:
    # As entities: a backslash in front of one changes nothing.
    return _TAG.sub("&lt;", text).replace("![", "!&#91;")
