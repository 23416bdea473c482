"""The launch header: how a candidate is launched, in `//!` lines at the top of its file."""

from __future__ import annotations

from llmkernel.candidate.expressions import Expression, did_you_mean
from llmkernel.candidate.header_launch import parse_launch
from llmkernel.candidate.header_lines import Cursor, LogicalLine, logical_lines
from llmkernel.candidate.header_scope import Scope
from llmkernel.candidate.header_signature import parse_array, parse_signature
from llmkernel.candidate.statements import (
    Branch,
    LaunchHeader,
    Let,
    Repeat,
    Require,
    Scratch,
    Statement,
    Swap,
    When,
)
from llmkernel.problem.signature import ArraySpec

MAX_NESTING = 32
_KEYWORDS = ("let", "require", "scratch", "when", "otherwise", "repeat", "swap")
_FOREIGN = {
    "if": "when",
    "elif": "when",
    "else": "otherwise",
    "for": "repeat",
    "while": "repeat",
    "assert": "require",
}


def parse_header(source: str) -> LaunchHeader:
    r"""Parse the launch header of a candidate.

    Parameters
    ----------
    source : str
        The whole `.cu` file, or only its `//!` lines.

    Raises
    ------
    llmkernel.errors.HeaderError
        With line and column, saying what was expected.

    Examples
    --------
    >>> header = parse_header("//! twice(x: float32[N]) -> y: float32[N]\n//! f<<<N, 1>>>(x, y, N)")
    >>> str(header.signature)
    'twice(x: float32[N]) -> y: float32[N]'
    """
    lines = logical_lines(source)
    scope = Scope()
    signature = parse_signature(lines[0], scope)
    parser = _Statements(lines)
    statements = parser.block(scope, lines[0].indent, 0)
    if parser.index < len(lines):
        line = lines[parser.index]
        line.fail(
            "Unexpected indentation.",
            0,
            rule="only the statements inside `when`, `otherwise` and `repeat` are indented",
            next_step="Align the line with the signature.",
        )
    return LaunchHeader(signature, statements, lines[0].line, lines[-1].end_line)


class _Statements:
    """Reads statements block by block; `index` is the next logical line."""

    def __init__(self, lines: list[LogicalLine]) -> None:
        self.lines = lines
        self.index = 1

    def block(self, scope: Scope, indent: int, depth: int) -> tuple[Statement, ...]:
        """Parse the statements at exactly `indent`."""
        if depth > MAX_NESTING:
            self.lines[self.index].fail(
                "The statements are nested too deeply.", 0, rule=f"blocks nest at most {MAX_NESTING} deep"
            )
        statements: list[Statement] = []
        while self.index < len(self.lines) and self.lines[self.index].indent == indent:
            statements.append(self.statement(scope, indent, depth))
        return tuple(statements)

    def statement(self, scope: Scope, indent: int, depth: int) -> Statement:
        line = self.lines[self.index]
        cursor = Cursor(line)
        word = cursor.token.text
        follower = line.tokens[1].text if len(line.tokens) > 1 else ""
        if word == "when":
            return self.when(scope, indent, depth)
        if word == "repeat":
            return self.repeat(scope, indent, depth)
        if word == "otherwise":
            cursor.fail(
                "`otherwise` has no `when` before it.", "`otherwise:` follows the last branch of a `when`"
            )
        if word in _FOREIGN and follower not in ("<<<", "<"):
            cursor.fail(
                f"`{word}` is not a statement of the launch header.",
                "statements are let, require, scratch, when, otherwise, repeat, swap and launches",
                next_step=f"Write `{_FOREIGN[word]}`.",
            )
        self.index += 1
        return _simple(cursor, scope)

    def when(self, scope: Scope, indent: int, depth: int) -> When:
        line = self.lines[self.index].line
        branches: list[Branch] = []
        inner: list[Scope] = []
        otherwise: tuple[Statement, ...] = ()
        while self.starts("when", indent):
            cursor = Cursor(self.lines[self.index])
            cursor.next()
            condition = _until_colon(cursor, scope, "a condition")
            inner.append(scope.copy())
            branch_line = cursor.line.line
            branches.append(Branch(condition, self.body(cursor, inner[-1], indent, depth), branch_line))
        if self.starts("otherwise", indent):
            cursor = Cursor(self.lines[self.index])
            cursor.next()
            cursor.expect(":", "`otherwise:` ends with a colon")
            inner.append(scope.copy())
            otherwise = self.body(cursor, inner[-1], indent, depth)
            # A value that every branch defines is defined afterwards.
            common = set.intersection(*(set(s.lets) for s in inner))
            scope.lets.update({n: inner[-1].lets[n] for n in common})
        return When(tuple(branches), otherwise, line)

    def starts(self, word: str, indent: int) -> bool:
        if self.index >= len(self.lines):
            return False
        line = self.lines[self.index]
        return line.indent == indent and line.tokens[0].text == word

    def repeat(self, scope: Scope, indent: int, depth: int) -> Repeat:
        cursor = Cursor(self.lines[self.index])
        cursor.next()
        count = _until_colon(cursor, scope, "a number of repetitions")
        inner = scope.copy()
        inner.repeat_depth += 1
        return Repeat(count, self.body(cursor, inner, indent, depth), cursor.line.line)

    def body(self, cursor: Cursor, scope: Scope, indent: int, depth: int) -> tuple[Statement, ...]:
        """Parse what stands after a colon: one statement, or a deeper block."""
        self.index += 1
        if cursor.token.kind != "end":
            if cursor.at("when", "otherwise", "repeat"):
                cursor.fail_expected(
                    "a launch, `let`, `require` or `swap`", "a nested block begins on its own line"
                )
            return (_simple(cursor, scope),)
        if self.index >= len(self.lines) or self.lines[self.index].indent <= indent:
            cursor.fail(
                "The block is empty.",
                "`when`, `otherwise` and `repeat` hold statements that are indented deeper",
                next_step="Indent the next line by four spaces.",
            )
        return self.block(scope, self.lines[self.index].indent, depth + 1)


def _until_colon(cursor: Cursor, scope: Scope, what: str) -> Expression:
    start, end = cursor.slice_until(":")
    if not cursor.at(":"):
        cursor.fail_expected("`:`", "`when`, `otherwise` and `repeat` end with a colon")
    result = scope.expression(cursor, start, end, what)
    cursor.index = end + 1
    return result


def _simple(cursor: Cursor, scope: Scope) -> Statement:
    word = cursor.token.text
    follower = cursor.line.tokens[cursor.index + 1].text if cursor.index + 1 < cursor.stop else ""
    # A kernel may be called `let`: what follows decides.
    if word == "let" and follower not in ("<", "<<<"):
        return _let(cursor, scope)
    if word == "require" and follower not in ("<", "<<<"):
        line = cursor.line.line
        cursor.next()
        condition = scope.expression(cursor, cursor.index, cursor.stop, "a condition")
        return Require(condition, line)
    if word == "scratch" and follower not in ("<", "<<<"):
        return _scratch(cursor, scope)
    if word == "swap" and follower == "(":
        return _swap(cursor, scope)
    if follower not in ("<", "<<<", "::"):
        near = did_you_mean(word, _KEYWORDS) or "."
        cursor.fail(
            f"Expected a statement, found `{word}`{near}",
            "statements are let, require, scratch, when, otherwise, repeat, swap and launches",
        )
    return parse_launch(cursor, scope)


def _let(cursor: Cursor, scope: Scope) -> Let:
    line = cursor.line.line
    cursor.next()
    name = cursor.name("a name", "a value reads `let name = expression`")
    scope.check_new(name, cursor)
    cursor.expect("=", "a value reads `let name = expression`")
    value = scope.expression(cursor, cursor.index, cursor.stop, "an expression")
    scope.lets[name.text] = line
    return Let(name.text, value, line)


def _scratch(cursor: Cursor, scope: Scope) -> Scratch:
    line = cursor.line.line
    rule = "scratch reads `scratch part: float32[S, M]`"
    if scope.repeat_depth:
        cursor.fail(
            "Scratch cannot be declared inside `repeat`.", rule, next_step="Move it before the `repeat`."
        )
    cursor.next()
    arrays: list[ArraySpec] = []
    while True:
        spec = parse_array(cursor, scope, "scratch")
        assert isinstance(spec, ArraySpec)
        arrays.append(spec)
        if not cursor.take(","):
            break
    cursor.end(rule)
    return Scratch(tuple(arrays), line)


def _swap(cursor: Cursor, scope: Scope) -> Swap:
    line = cursor.line.line
    rule = "`swap(a, b)` takes two outputs or scratch buffers of the same dtype and shape"
    cursor.next()
    cursor.expect("(", rule)
    tokens = [cursor.name("the name of an array", rule)]
    cursor.expect(",", rule)
    tokens.append(cursor.name("the name of an array", rule))
    cursor.expect(")", rule)
    cursor.end(rule)
    for token in tokens:
        role = scope.roles.get(token.text)
        if role is None:
            cursor.fail(
                f"Unknown array `{token.text}`{did_you_mean(token.text, scope.roles) or '.'}", rule, token
            )
        if role not in ("output", "scratch"):
            cursor.fail(f"`{token.text}` is an {role} array: it stays where the caller put it.", rule, token)
    first, second = (scope.arrays[t.text] for t in tokens)
    if first.name == second.name:
        cursor.fail(f"`{first.name}` cannot change places with itself.", rule, tokens[1])
    if (first.dtype, first.dims) != (second.dtype, second.dims):
        cursor.fail(f"`{first}` and `{second}` differ in dtype or shape.", rule, tokens[1])
    return Swap(first.name, second.name, line)
