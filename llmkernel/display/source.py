"""CUDA source with its highlighting, as HTML that copies cleanly."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from llmkernel.display.clean import cap
from llmkernel.display.markup import Markup, escape

MAX_CHARACTERS = 60_000
MAX_HTML = 110_000


def highlight(source: str, *, where: str = "", first_line: int = 1) -> Markup:
    """Return `source` as a ``<pre>``, one ``<span class="l">`` a line.

    Line numbers are drawn by the style sheet, so that a copied selection holds source only.

    Parameters
    ----------
    source : str
        CUDA C++ from anywhere; capped at 60 000 characters.
    where : str
        Place of the full text, named where it is cut.
    first_line : int
        Number of the first line.
    """
    text = cap(source, MAX_CHARACTERS, where).rstrip("\n")
    start = f' style="counter-reset:l {first_line - 1}"' if first_line != 1 else ""
    opening = f'<pre class="src num" tabindex="0" aria-label="CUDA source"><code{start}>'
    body = highlight_lines(text)
    if sum(map(len, body)) > MAX_HTML:
        body = [escape(line) for line in text.split("\n")]
    while sum(map(len, body)) > MAX_HTML and len(body) > 1:
        body = [*body[: len(body) // 2], escape(f"… cut{'; full text in ' + where if where else ''}")]
    if sum(map(len, body)) > MAX_HTML:
        body = [escape(cap(text, MAX_HTML // 8, where))]
    lines = "\n".join(f'<span class="l">{line}</span>' for line in body)
    return Markup(f"{opening}{lines}</code></pre>")


def highlight_lines(text: str) -> list[Markup]:
    """Return one piece of HTML a line; a token that spans lines is closed and opened again."""
    lines: list[list[str]] = [[]]
    for kind, value in _tokens(text):
        pieces = value.split("\n")
        for index, piece in enumerate(pieces):
            if index:
                lines.append([])
            if piece:
                lines[-1].append(f'<span class="{kind}">{escape(piece)}</span>' if kind else escape(piece))
    return [Markup("".join(line)) for line in lines]


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    """Yield class and text; neighbours of one class are joined."""
    kind, held = "", ""
    for token, value in _lexer().get_tokens(text):
        found = _class(token)
        if found == kind or not value.strip():
            held += value
            continue
        if held:
            yield kind, held
        kind, held = found, value
    if held:
        yield kind, held


@cache
def _lexer() -> Any:
    from pygments.lexers import CudaLexer

    return CudaLexer(stripnl=False, ensurenl=False)


@cache
def _class(token: Any) -> str:
    """Map Pygments' many token types to the seven that the style sheet knows."""
    from pygments.token import Comment, Keyword, Literal, Name

    if token in Comment.Preproc or token in Comment.PreprocFile:
        return "p"
    for family, name in (
        (Comment, "c"),
        (Keyword.Type, "t"),
        (Keyword, "k"),
        (Name.Function, "f"),
        (Name.Class, "t"),
        (Name.Builtin, "t"),
        (Literal.String, "s"),
        (Literal.Number, "n"),
    ):
        if token in family:
            return name
    return ""
