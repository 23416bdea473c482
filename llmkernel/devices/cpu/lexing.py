"""Reading C++ source just enough to edit it: comments, literals and line numbers."""

from __future__ import annotations

import re

_COMMENT_OR_LITERAL = re.compile(
    r"""//(?:[^\n\\]|\\.)*        # a line comment, which a backslash continues
      | /\*.*?(?:\*/|\Z)
      | R"([^()\\\s]{0,16})\(.*?\)\1"
      | "(?:\\.|[^"\\\n])*"
      | (?<![0-9a-fA-F])'(?:\\.|[^'\\\n])*'   # not the separator of 1'000
    """,
    re.DOTALL | re.VERBOSE,
)


def blank_comments(source: str, *, keeps_strings: bool = False) -> str:
    """Return `source` with comments (and the contents of literals) replaced by spaces.

    Lengths and line breaks stay, so offsets in the result are offsets in the source.
    """

    def blank(match: re.Match[str]) -> str:
        text = match.group(0)
        if keeps_strings and not text.startswith(("//", "/*")):
            return text
        return re.sub(r"[^\n]", " ", text)

    return _COMMENT_OR_LITERAL.sub(blank, source)


def line_of(source: str, offset: int) -> int:
    """Return the 1-based line of an offset."""
    return source.count("\n", 0, offset) + 1
