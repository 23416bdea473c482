"""The text of a launch header: `//!` lines, joined where a bracket is open, cut into tokens."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn

from llmkernel.candidate.expressions import located
from llmkernel.errors import HeaderError

MARK = "//!"
MAX_LINES = 1000
EXAMPLE = "//! scale(x: float32[N], a: float32) -> y: float32[N]"

_TOKEN = re.compile(
    r"(?P<space>\s+)"
    r"|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<float>(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?[fF]?|\d+[eE][+-]?\d+[fF]?)"
    r"|(?P<number>\d\w*)"
    r"|(?P<symbol><<<|>>>|->|::|//|==|!=|<=|>=|&&|\|\||.)",
    re.ASCII,
)
# A signature or a launch in an ordinary comment.
_MISSPELLED = re.compile(r"[ \t]*(///?|//\s+!|#!?|/\*!?)[ \t]*\w+(?:\(.*\)[ \t]*->|(?:<.*>)?<<<.*>>>)")
_OPEN = {"(": ")", "[": "]", "{": "}", "<<<": ">>>"}
_CLOSE = {v: k for k, v in _OPEN.items()}


@dataclass(frozen=True)
class Token:
    """One word or symbol of a logical line; `start` and `end` are offsets in its text."""

    kind: str
    text: str
    start: int
    end: int


@dataclass
class LogicalLine:
    """One statement's text, joined from one or more lines of the file.

    Attributes
    ----------
    text : str
    indent : int
        Columns before the first word, counted after the mark.
    pieces : list of (int, int, int)
        Offset in `text` at which a piece begins, with its line and column in the file.
    tokens : list of Token
    """

    text: str
    indent: int
    pieces: list[tuple[int, int, int]]
    tokens: list[Token]

    @property
    def line(self) -> int:
        """1-based line of the first word."""
        return self.pieces[0][1]

    @property
    def end_line(self) -> int:
        """1-based line of the last word."""
        return self.pieces[-1][1]

    def locate(self, offset: int) -> tuple[int, int]:
        """Return line and column in the file of an offset in `text`."""
        start, line, column = next(p for p in reversed(self.pieces) if p[0] <= offset)
        return line, column + offset - start

    def fail(self, what: str, offset: int, *, rule: str, next_step: str | None = None) -> NoReturn:
        """Raise a HeaderError at `offset`."""
        line, column = self.locate(max(offset, 0))
        raise HeaderError(
            what,
            line=line,
            column=column,
            rule=rule,
            received=located(self.text, line, column),
            next_step=next_step or "See the grammar of the launch header.",
        )


def logical_lines(source: str) -> list[LogicalLine]:
    """Return the header's statements as text.

    Raises
    ------
    llmkernel.errors.HeaderError
        When there is no header, it is in two places, or a bracket stays open.
    """
    joined: list[LogicalLine] = []
    stack: list[Token] = []
    for number, column, text in _header_rows(source):
        bare = text.strip()
        if not bare:
            continue
        start = column + len(text) - len(text.lstrip())
        continues = joined and (stack or re.match(r"->|where\b", bare))
        if continues:
            last = joined[-1]
            last.text += " "
            last.pieces.append((len(last.text), number, start))
            last.text += bare
        else:
            indent = len(text.expandtabs(4)) - len(text.expandtabs(4).lstrip())
            joined.append(LogicalLine(bare, indent, [(0, number, start)], []))
        _tokenize(joined[-1], joined[-1].pieces[-1][0], stack)
    if not joined:
        _fail_missing("")
    if stack:
        joined[-1].fail(
            f"`{stack[-1].text}` is never closed.",
            stack[-1].start,
            rule="a statement ends on the line that closes its brackets",
            next_step=f"Add `{_OPEN[stack[-1].text]}`.",
        )
    return joined


def _header_rows(source: str) -> list[tuple[int, int, str]]:
    """Return (line, column of the text, text) of the one block of `//!` lines."""
    rows: list[tuple[int, int, str]] = []
    gap_line = 0
    for number, row in enumerate(source.split("\n"), 1):
        bare = row.strip()
        if bare.startswith(MARK):
            if gap_line:
                raise HeaderError(
                    "The launch header is in two places.",
                    line=number,
                    column=row.index(MARK) + 1,
                    rule="all `//!` lines form one block",
                    received=located(bare, number, row.index(MARK) + 1),
                    next_step=f"Move it to the block on line {rows[0][0]}, or write `//` for a comment.",
                )
            column = row.index(MARK) + len(MARK)
            text = row[column:].split("#", 1)[0].rstrip()
            if text.startswith(" "):
                text, column = text[1:], column + 1
            rows.append((number, column + 1, text))
            if len(rows) > MAX_LINES:
                raise HeaderError(
                    "The launch header is too long.",
                    line=number,
                    rule=f"a launch header has at most {MAX_LINES} lines",
                    received=f"more than {MAX_LINES} lines",
                    next_step="Use `repeat` for launches that recur.",
                )
        elif rows and bare:
            gap_line = number
    if not rows:
        _fail_missing(source)
    return rows


def _fail_missing(source: str) -> NoReturn:
    for number, row in enumerate(source.split("\n"), 1):
        match = _MISSPELLED.match(row[:500])
        if match:
            raise HeaderError(
                f"The launch header is written with `{match[1]}`.",
                line=number,
                column=match.start(1) + 1,
                rule=f"every line of a launch header begins with `{MARK}`",
                received=located(row.strip(), number, match.start(1) + 1),
                next_step=f"Write `{MARK}` in the place of `{match[1]}`.",
            )
    raise HeaderError(
        "The source has no launch header.",
        line=1,
        rule="a candidate begins with `//!` lines: its signature, then its launches",
        received="no `//!` line",
        next_step=f"Begin the file with a line such as `{EXAMPLE}`.",
    )


def _tokenize(line: LogicalLine, start: int, stack: list[Token]) -> None:
    """Cut `line.text` from `start` on into tokens; `stack` holds the brackets that are still open."""
    for match in _TOKEN.finditer(line.text, start):
        kind, text = match.lastgroup or "symbol", match.group()
        if kind == "space":
            continue
        if kind == "symbol" and (not text.isascii() or not text.isprintable() or text in "\"'\\`@$"):
            line.fail(
                f"Unexpected character {text!r}.",
                match.start(),
                rule="a launch header is made of ASCII names, integers and operators",
                next_step="Remove the character.",
            )
        token = Token(kind, text, match.start(), match.end())
        line.tokens.append(token)
        if text in _OPEN:
            stack.append(token)
        elif text in _CLOSE:
            if not stack or _OPEN[stack[-1].text] != text:
                line.fail(
                    f"`{text}` closes nothing here.",
                    token.start,
                    rule="brackets are closed in the order in which they were opened",
                    next_step=f"Write `{_OPEN[stack[-1].text]}` first." if stack else "Remove it.",
                )
            stack.pop()


class Cursor:
    """Reads the tokens of one logical line from left to right."""

    def __init__(self, line: LogicalLine, start: int = 0, stop: int | None = None) -> None:
        self.line = line
        self.index = start
        self.stop = len(line.tokens) if stop is None else stop

    @property
    def token(self) -> Token:
        """The next token; an empty one at the end."""
        if self.index < self.stop:
            return self.line.tokens[self.index]
        end = self.line.tokens[self.stop - 1].end if self.stop else 0
        return Token("end", "", end, end)

    def at(self, *texts: str) -> bool:
        """Whether the next token is one of `texts`."""
        return self.token.text in texts and self.token.kind != "end"

    def take(self, *texts: str) -> bool:
        """Skip the next token when it is one of `texts`; say whether it was."""
        found = self.at(*texts)
        self.index += found
        return found

    def next(self) -> Token:
        """Return the next token and move past it."""
        token = self.token
        self.index += token.kind != "end"
        return token

    def expect(self, text: str, rule: str) -> Token:
        """Take `text` or fail."""
        if not self.at(text):
            self.fail_expected(f"`{text}`", rule)
        return self.next()

    def name(self, what: str, rule: str) -> Token:
        """Take a name or fail."""
        if self.token.kind != "name":
            self.fail_expected(what, rule)
        return self.next()

    def end(self, rule: str) -> None:
        """Fail unless the line is used up."""
        if self.token.kind != "end":
            self.fail_expected("the end of the line", rule)

    def fail_expected(self, what: str, rule: str) -> NoReturn:
        """Fail at the next token, saying what should stand there."""
        found = f"`{self.token.text}`" if self.token.kind != "end" else "the end of the line"
        self.line.fail(f"Expected {what}, found {found}.", self.token.start, rule=rule)

    def fail(
        self, what: str, rule: str, token: Token | None = None, next_step: str | None = None
    ) -> NoReturn:
        """Fail at `token`, or at the next one."""
        self.line.fail(what, (token or self.token).start, rule=rule, next_step=next_step)

    def slice_until(self, *stops: str) -> tuple[int, int]:
        """Skip tokens up to one of `stops` outside brackets; return the range of token indices."""
        start, depth = self.index, 0
        while self.index < self.stop:
            text = self.line.tokens[self.index].text
            if depth == 0 and text in stops:
                break
            depth += (text in _OPEN) - (text in _CLOSE)
            if depth < 0:
                break
            self.index += 1
        return start, self.index

    def text(self, start: int, end: int) -> str:
        """Return the text of a range of tokens."""
        if start >= end:
            return ""
        return self.line.text[self.line.tokens[start].start : self.line.tokens[end - 1].end]

    def offset(self, index: int) -> int:
        """Return where the token at `index` begins, or where the line ends."""
        tokens = self.line.tokens
        return tokens[index].start if index < len(tokens) else len(self.line.text)
