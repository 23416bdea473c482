"""Launch statements: `kernel<T, 32><<<grid, block, shared, cluster=(8, 1, 1), cooperative>>>(arguments)`."""

from __future__ import annotations

import math

from llmkernel.candidate.expressions import Expression, did_you_mean
from llmkernel.candidate.header_lines import Cursor, Token
from llmkernel.candidate.header_scope import CXX_DTYPES, Scope
from llmkernel.candidate.statements import (
    ArrayUse,
    CxxArgument,
    Launch,
    LaunchArgument,
    NumberUse,
    ScalarUse,
    TemplateArgument,
    TensorMapUse,
)
from llmkernel.problem.dtypes import DTYPES

SWIZZLES = (0, 32, 64, 128)
_RULE = "a launch reads `kernel<T, 32><<<grid, block, shared_bytes>>>(arguments)`"
_CXX_WORDS = (
    "unsigned",
    "signed",
    "const",
    "long",
    "short",
    "char",
    "void",
    "typename",
    "struct",
    "int",
    "float",
    "double",
)


def parse_launch(cursor: Cursor, scope: Scope) -> Launch:
    """Parse one launch to the end of its line."""
    first = cursor.name("the name of a kernel", _RULE)
    name = first.text
    while cursor.take("::"):
        name += "::" + cursor.name("a name after `::`", _RULE).text
    template = _template_arguments(cursor, scope) if cursor.at("<") else ()
    cursor.expect("<<<", _RULE)
    config = _Config(cursor, scope)
    config.parse()
    cursor.expect("(", _RULE)
    arguments: list[LaunchArgument] = []
    while not cursor.at(")"):
        start, end = cursor.slice_until(",", ")")
        arguments.append(_argument(cursor, scope, start, end))
        cursor.index = end
        if not cursor.take(","):
            break
    cursor.expect(")", _RULE)
    cursor.take(";")
    cursor.end(_RULE)
    line, column = cursor.line.locate(first.start)
    return Launch(
        name,
        template,
        config.grid,
        config.block,
        config.shared,
        config.cluster,
        config.is_cooperative,
        tuple(arguments),
        line,
        column,
    )


class _Config:
    """What stands between `<<<` and `>>>`."""

    def __init__(self, cursor: Cursor, scope: Scope) -> None:
        self.cursor = cursor
        self.scope = scope
        self.grid: tuple[Expression, ...] = ()
        self.block: tuple[Expression, ...] = ()
        self.shared: Expression | None = None
        self.cluster: tuple[Expression, ...] | None = None
        self.is_cooperative = False

    def parse(self) -> None:
        cursor, position = self.cursor, 0
        is_keyword_seen = False
        while not cursor.at(">>>"):
            start, end = cursor.slice_until(",", ">>>")
            tokens = cursor.line.tokens[start:end]
            if len(tokens) > 1 and tokens[1].text == "=" and tokens[0].kind == "name":
                self.keyword(tokens[0], start + 2, end)
                is_keyword_seen = True
            elif len(tokens) == 1 and tokens[0].text == "cooperative":
                self.is_cooperative = True
                is_keyword_seen = True
            elif is_keyword_seen:
                cursor.index = start
                cursor.fail_expected("a keyword such as `cluster=`", "plain values stand before keywords")
            else:
                self.positional(position, start, end)
                position += 1
            cursor.index = end
            if not cursor.take(","):
                break
        if position < 2:
            cursor.fail_expected("a block size" if position else "a grid size", _RULE)
        cursor.expect(">>>", _RULE)

    def positional(self, position: int, start: int, end: int) -> None:
        if position == 0:
            self.grid = self.sizes(start, end, "a grid size")
        elif position == 1:
            self.block = self.sizes(start, end, "a block size")
        elif position == 2:
            self.shared = self.scope.expression(self.cursor, start, end, "a number of bytes")
        else:
            self.cursor.index = start
            self.cursor.fail(
                "A launch has no stream.",
                "launches run in order on the caller's stream",
                next_step="Remove the fourth value.",
            )

    def keyword(self, word: Token, start: int, end: int) -> None:
        text, cursor = word.text, self.cursor
        if text == "shared" and self.shared is None:
            self.shared = self.scope.expression(cursor, start, end, "a number of bytes")
        elif text == "cluster" and self.cluster is None:
            self.cluster = self.sizes(start, end, "a cluster size")
        elif text == "cooperative" and cursor.text(start, end) in ("True", "False", "true", "false"):
            self.is_cooperative = cursor.text(start, end).lower() == "true"
        else:
            known = ("shared", "cluster", "cooperative")
            what = (
                "is given twice."
                if text in known[:2]
                else f"is not a keyword of a launch{did_you_mean(text, known) or '.'}"
            )
            if text == "cooperative":
                what = "is either there or not: True or False."
            cursor.fail(
                f"`{text}` {what}", "keywords of a launch are shared=, cluster=(x, y, z), cooperative", word
            )

    def sizes(self, start: int, end: int, what: str) -> tuple[Expression, ...]:
        parts = _tuple_parts(self.cursor, start, end) or [(start, end)]
        if len(parts) > 3:
            self.cursor.index = parts[3][0]
            self.cursor.fail(f"{what[0].upper()}{what[1:]} has at most three axes.", "sizes are (x, y, z)")
        return tuple(self.scope.expression(self.cursor, a, b, what) for a, b in parts)


def _tuple_parts(cursor: Cursor, start: int, end: int) -> list[tuple[int, int]] | None:
    """Return the ranges of the elements when tokens `start` to `end` are ``(a, b, …)``, else None."""
    tokens = cursor.line.tokens
    if end - start < 3 or tokens[start].text != "(":
        return None
    inner = Cursor(cursor.line, start + 1, end)
    parts = []
    while True:
        part = inner.slice_until(",")
        parts.append(part)
        if not inner.take(","):
            break
    # slice_until stops at the parenthesis that closes the first one: it must be the last token.
    if inner.index != end - 1 or (len(parts) == 1):
        return None
    if parts[-1][0] == parts[-1][1]:
        parts.pop()
    return parts


def _template_arguments(cursor: Cursor, scope: Scope) -> tuple[TemplateArgument, ...]:
    opening = cursor.next()
    arguments: list[TemplateArgument] = []
    start, depth, angles = cursor.index, 0, 0
    while True:
        token = cursor.token
        if token.kind == "end" or token.text == "<<<":
            cursor.fail("`<` is never closed.", "template arguments stand between `<` and `>`", opening)
        text = token.text
        depth += (text in ("(", "[", "{")) - (text in (")", "]", "}"))
        if depth == 0 and angles == 0 and text in (",", ">"):
            if cursor.index > start or text == "," or arguments:
                arguments.append(_template_argument(cursor, scope, start, cursor.index))
            cursor.next()
            if text == ">":
                return tuple(arguments)
            start = cursor.index
            continue
        if depth == 0:
            angles += (text == "<") - (text == ">")
        cursor.next()


def _template_argument(cursor: Cursor, scope: Scope, start: int, end: int) -> TemplateArgument:
    tokens = cursor.line.tokens[start:end]
    here = cursor.index
    if not tokens:
        cursor.index = start
        cursor.fail_expected("a template argument", _RULE)
    first = tokens[0].text
    is_parenthesised = first == "("
    texts = [t.text for t in tokens]
    if len(tokens) == 1 and tokens[0].kind == "name":
        # A single unknown name is a type or a constant of the source; the kernels' declarations decide.
        if first in DTYPES:
            return CxxArgument(DTYPES[first].cxx[0])
        if (
            first not in scope.numbers()
            and first not in ("true", "false", "True", "False")
            and _is_free(first, scope)
        ):
            return CxxArgument(first)
    elif (
        (
            not is_parenthesised
            and (first in _CXX_WORDS or first in CXX_DTYPES or "::" in texts or "<" in texts)
        )
        or tokens[-1].text == "*"
        or (first in scope.type_variables and len(tokens) > 1)
    ):
        return CxxArgument(_cxx_text(texts))
    cursor.index = here
    return scope.expression(cursor, start, end, "a template argument")


def _is_free(name: str, scope: Scope) -> bool:
    return name not in scope.arrays and name not in scope.scalars and name != "repeat_index"


def _cxx_text(texts: list[str]) -> str:
    result = ""
    for text in texts:
        needs_space = (
            result and (result[-1].isalnum() or result[-1] == "_") and (text[0].isalnum() or text[0] == "_")
        )
        result += (" " if needs_space or result.endswith(",") else "") + text
    return result


def _argument(cursor: Cursor, scope: Scope, start: int, end: int) -> LaunchArgument:
    cursor.index = start
    tokens = cursor.line.tokens[start:end]
    if not tokens:
        cursor.fail_expected("an argument", _RULE)
    first = tokens[0]
    column = cursor.line.locate(first.start)[1]
    if first.text == "tensor_map":
        return _tensor_map(cursor, scope, end, column)
    if first.text in scope.arrays and (len(tokens) == 1 or tokens[1].text != "."):
        return _array_use(cursor, scope, start, end, column)
    if len(tokens) == 1 and first.text in scope.scalars:
        return ScalarUse(first.text, column)
    if len(tokens) == 1 and first.text in ("nullptr", "NULL"):
        cursor.fail(
            "A launch cannot pass a null pointer.",
            "arguments are arrays, scalars, expressions and tensor maps",
        )
    number = _number(tokens)
    if number is not None:
        if not math.isfinite(number):
            cursor.fail("The number does not fit a double.", "numbers are finite")
        return NumberUse(number, column)
    if first.text == "&":
        cursor.fail(
            "`&` is not available.",
            "an array with an offset reads `x + offset`",
            next_step="Write `x + offset`.",
        )
    return scope.expression(cursor, start, end, "an argument")


def _number(tokens: list[Token]) -> float | None:
    sign = -1.0 if tokens[0].text == "-" else 1.0
    rest = tokens[1:] if tokens[0].text in ("-", "+") else tokens
    if len(rest) == 1 and rest[0].kind == "float":
        return sign * float(rest[0].text.rstrip("fF"))
    return None


def _array_use(cursor: Cursor, scope: Scope, start: int, end: int, column: int) -> ArrayUse:
    name = cursor.next()
    if cursor.index >= end:
        return ArrayUse(name.text, None, column)
    if not cursor.take("+"):
        cursor.fail_expected(
            "`,`, `)` or `+ offset`", "an array argument reads `x` or `x + offset`, in elements"
        )
    return ArrayUse(name.text, scope.expression(cursor, start + 2, end, "an offset in elements"), column)


def _tensor_map(cursor: Cursor, scope: Scope, end: int, column: int) -> TensorMapUse:
    rule = "a tensor map reads `tensor_map(a, box=(64, 64), swizzle=128)`"
    cursor.next()
    cursor.expect("(", rule)
    name = cursor.name("the name of an array", rule)
    if name.text not in scope.arrays:
        cursor.fail(f"Unknown array `{name.text}`{did_you_mean(name.text, scope.arrays) or '.'}", rule, name)
    box: tuple[Expression, ...] = ()
    swizzle = 0
    while cursor.take(","):
        if cursor.at(")"):
            break
        word = cursor.name("`box=` or `swizzle=`", rule)
        cursor.expect("=", rule)
        start, stop = cursor.slice_until(",", ")")
        if word.text == "box":
            parts = _tuple_parts(cursor, start, stop) or [(start, stop)]
            box = tuple(scope.expression(cursor, a, b, "a box size") for a, b in parts)
        elif word.text == "swizzle":
            text = cursor.text(start, stop)
            if text not in [str(s) for s in SWIZZLES]:
                cursor.index = start
                cursor.fail_expected("0, 32, 64 or 128", rule)
            swizzle = int(text)
        else:
            cursor.fail(f"`{word.text}` is not a keyword of a tensor map.", rule, word)
        cursor.index = stop
    rank = len(scope.arrays[name.text].dims)
    if len(box) != rank:
        cursor.fail(
            f"`{name.text}` has {rank} axes, the box has {len(box)}.",
            rule,
            name,
            "Give one size an axis, in array order.",
        )
    cursor.expect(")", rule)
    if cursor.index != end:
        cursor.fail_expected("`,` or `)`", rule)
    return TensorMapUse(name.text, box, swizzle, column)
