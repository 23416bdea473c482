"""CUDA C++ tokens: comments dropped, lines spliced, preprocessor lines kept whole."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import lru_cache

_PATTERN = re.compile(
    r"(?P<space>[ \t\r\f\v\n]+)"
    r"|(?P<comment>//[^\n]*|/\*.*?(?:\*/|\Z))"
    r'|(?P<string>(?:u8|[uUL])?R"(?P<delimiter>[^()\\\s"]{0,16})\(.*?(?:\)(?P=delimiter)"|\Z)'
    r'|(?:u8|[uUL])?"(?:[^"\\\n]|\\.)*(?:"|(?=\n)|\Z))'
    r"|(?P<char>(?:u8|[uUL])?'(?:[^'\\\n]|\\.)*(?:'|(?=\n)|\Z))"
    r"|(?P<number>\.?\d(?:[eEpP][+-]|'(?=\w)|[\w.])*)"
    r"|(?P<name>[^\W\d]\w*)"
    r"|(?P<symbol><<<|>>>|->|::|\+\+|--|&&|\|\||==|!=|<=|>=|%:|<%|%>|<:|:>|\.\.\.|##|.)",
    re.DOTALL,
)
_DIGRAPHS = {"%:": "#", "<%": "{", "%>": "}", "<:": "[", ":>": "]"}


@dataclass(frozen=True)
class CxxToken:
    """One token.

    Attributes
    ----------
    kind : str
        ``name``, ``number``, ``string``, ``char``, ``symbol`` or ``directive`` (a whole preprocessor line).
    text : str
        For a directive: without comments, ``#`` first.
    line, column : int
        1-based.
    """

    kind: str
    text: str
    line: int
    column: int


class _Places:
    """Maps offsets of the spliced text to lines and columns of the file."""

    def __init__(self, source: str) -> None:
        parts: list[str] = []
        # Each entry: offset in the spliced text, line, column there.
        self.entries: list[tuple[int, int, int]] = [(0, 1, 1)]
        length, position, line = 0, 0, 1
        for match in re.finditer(r"\\[ \t]*\r?\n|\n", source):
            is_newline = match.group() == "\n"
            part = source[position : match.end() if is_newline else match.start()]
            parts.append(part)
            length += len(part)
            position, line = match.end(), line + 1
            self.entries.append((length, line, 1))
        parts.append(source[position:])
        self.text = "".join(parts)
        self._offsets = [e[0] for e in self.entries]

    def __call__(self, offset: int) -> tuple[int, int]:
        start, line, column = self.entries[bisect_right(self._offsets, offset) - 1]
        return line, column + offset - start


def tokenize(source: str) -> list[CxxToken]:
    """Return the tokens of a `.cu` file; any text has some."""
    return list(_tokens(source))


@lru_cache(maxsize=16)
def _tokens(source: str) -> tuple[CxxToken, ...]:
    # Rules, parameters, suspicions and delays each ask for those of the same source.
    places = _Places(source)
    text = places.text
    tokens: list[CxxToken] = []
    position, is_line_start = 0, True
    while position < len(text):
        match = _PATTERN.match(text, position)
        assert match is not None, "the last alternative takes any character"
        kind, found = match.lastgroup or "symbol", match.group()
        if kind == "delimiter":
            kind = "string"
        start, position = position, match.end()
        if kind in ("space", "comment"):
            is_line_start = is_line_start or "\n" in found
            continue
        found = _DIGRAPHS.get(found, found)
        line, column = places(start)
        if found == "#" and is_line_start:
            found, position = _directive(text, position)
            kind = "directive"
        is_line_start = kind == "directive"
        tokens.append(CxxToken(kind, found, line, column))
    return tuple(tokens)


def _directive(text: str, position: int) -> tuple[str, int]:
    """Return a preprocessor line without comments, and where it ends."""
    parts = ["#"]
    while position < len(text):
        if text[position] == "\n":
            break
        match = _PATTERN.match(text, position)
        assert match is not None
        found, kind = match.group(), match.lastgroup
        if kind == "space" and "\n" in found:
            found = found[: found.index("\n")]
            position += len(found)
            break
        position = match.end()
        parts.append(" " if kind == "comment" else found)
    return "".join(parts).strip(), position


def expand_macros(tokens: list[CxxToken]) -> list[CxxToken]:
    """Replace object-like macros that the file itself defines; directives stay in the list."""
    macros: dict[str, list[CxxToken]] = {}
    result: list[CxxToken] = []
    budget = 20_000
    for token in tokens:
        if token.kind == "directive":
            _record_macro(token, macros)
            result.append(token)
        elif token.kind == "name" and token.text in macros and budget > 0:
            expanded = _expand(token, macros, frozenset(), [budget])
            budget -= len(expanded)
            result.extend(CxxToken(t.kind, t.text, token.line, token.column) for t in expanded)
        else:
            result.append(token)
    return result


def _record_macro(token: CxxToken, macros: dict[str, list[CxxToken]]) -> None:
    match = re.match(r"#\s*(define|undef)\s+(\w+)(\(?)(.*)", token.text, re.DOTALL)
    if match is None:
        return
    word, name, parenthesis, body = match.groups()
    macros.pop(name, None)
    if word == "define" and not parenthesis:
        macros[name] = tokenize(body)


def _expand(
    token: CxxToken, macros: dict[str, list[CxxToken]], active: frozenset[str], budget: list[int]
) -> list[CxxToken]:
    if token.kind != "name" or token.text not in macros or token.text in active or budget[0] <= 0:
        return [token]
    result: list[CxxToken] = []
    for inner in macros[token.text]:
        budget[0] -= 1
        result.extend(_expand(inner, macros, active | {token.text}, budget))
    return result
