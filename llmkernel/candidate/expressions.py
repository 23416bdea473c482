"""Integer expressions of a launch header: a whitelist over Python's `ast`, evaluated in 64 bits.

Conditions are expressions too: as in C, a condition counts as 0 or 1 where a number is wanted, and a number
other than 0 is true. `//` and `%` round down, as in Python. Facts about arguments enter the environment as
ordinary entries, under a key of their own:

==================  ===============================  ==========================================
written             environment key                  value
==================  ===============================  ==========================================
``sizeof(T)``       ``sizeof(T)``                    bytes of one element
``aligned(x, 16)``  ``address(x)``                   byte address of `x` (at least modulo 4096)
``tma_ok(x)``       ``tma_ok(x)``                    bool
``x.stride(0)``     ``x.stride(0)``                  stride in elements
==================  ===============================  ==========================================
"""

from __future__ import annotations

import ast
import operator
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from llmkernel.errors import HeaderError

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
MAX_LENGTH = 4000
MAX_DEPTH = 100
MAX_ALIGNMENT = 4096
FUNCTIONS = ("aligned", "ceil_div", "max", "min", "sizeof", "tma_ok")

Environment = Mapping[str, int | bool]
Locate = Callable[[int], tuple[int, int]]
_Function = Callable[[Environment], Any]

_OR, _AND, _NOT, _COMPARE, _ADD, _MULTIPLY, _UNARY, _ATOM = range(8)


@dataclass(frozen=True, order=True)
class Fact:
    """Something that an expression asks of an argument.

    Attributes
    ----------
    kind : str
        ``sizeof``, ``address``, ``tma_ok`` or ``stride``.
    subject : str
        A type for ``sizeof``, else an array.
    axis : int
        For ``stride``.
    """

    kind: str
    subject: str
    axis: int = 0

    @property
    def key(self) -> str:
        """The environment key under which the fact's value is looked up."""
        return (
            f"{self.subject}.stride({self.axis})" if self.kind == "stride" else f"{self.kind}({self.subject})"
        )


@dataclass(frozen=True)
class Expression:
    """One parsed expression; equal and hashed by its canonical text.

    Attributes
    ----------
    text : str
        Canonical text: parsing it gives an equal expression.
    names : frozenset of str
        Plain names that need a value.
    facts : frozenset of Fact
        Facts that need a value.
    function : callable
        Environment to value.
    line, column : int
        1-based place in the `.cu` file; 0 when unknown.
    """

    text: str
    names: frozenset[str] = field(compare=False)
    facts: frozenset[Fact] = field(compare=False)
    function: _Function = field(compare=False, repr=False)
    line: int = field(default=0, compare=False)
    column: int = field(default=0, compare=False)

    def evaluate(self, environment: Environment) -> int:
        """Return the value; a bool for a condition.

        Raises
        ------
        llmkernel.errors.HeaderError
            On 64-bit overflow, on division by zero and for a name without a value.
        """
        try:
            value = self.function(environment)
        except _EvaluationError as error:
            self._fail(str(error), environment)
        except KeyError as error:
            self._fail(f"`{error.args[0]}` has no value", environment)
        assert isinstance(value, int)
        return value

    def _fail(self, reason: str, environment: Environment) -> NoReturn:
        keys = sorted(self.names | {f.key for f in self.facts})
        values = ", ".join(f"{k} = {int(environment[k])}" for k in keys if k in environment)
        raise HeaderError(
            f"`{self.text}`: {reason}.",
            line=self.line,
            column=self.column,
            rule="expressions are evaluated in signed 64-bit integers and never wrap",
            received=located(values or self.text, self.line, self.column),
            next_step="Add a `require` that excludes such arguments, or rewrite the expression.",
        ) from None

    @property
    def is_name(self) -> bool:
        """Whether the expression is one plain name."""
        return self.text.isidentifier() and self.text in self.names

    def __str__(self) -> str:
        return self.text

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (self.text, self.line, self.column))


def _rebuild(text: str, line: int, column: int) -> Expression:
    return parse_expression(text, line=line, column=column)


def parse_expression(
    text: str, *, line: int = 0, column: int = 0, locate: Locate | None = None
) -> Expression:
    """Parse one expression.

    Parameters
    ----------
    text : str
        For example ``"8 * ceil_div(N, 64)"``.
    line, column : int
        Where the text begins in the `.cu` file, for messages.
    locate : callable, optional
        Maps an offset in `text` to a line and column, for text that was joined from several lines.

    Raises
    ------
    llmkernel.errors.HeaderError
        For everything that is not on the whitelist, with its place.

    Examples
    --------
    >>> chunk = parse_expression("8*ceil_div(N,64)")
    >>> str(chunk), chunk.evaluate({"N": 100})
    ('8 * ceil_div(N, 64)', 16)
    """
    place = locate or (lambda offset: (line, column + offset if column else 0))
    parser = _Parser(text, place)
    function, canonical, _ = parser.parse()
    first_line, first_column = place(len(text) - len(text.lstrip()))
    names, facts = frozenset(parser.names), frozenset(parser.facts)
    return Expression(canonical, names, facts, function, first_line, first_column)


class _EvaluationError(Exception):
    """Turned into a HeaderError by `Expression.evaluate`, which knows the place."""


def _checked(value: int) -> int:
    if INT64_MIN <= value <= INT64_MAX:
        return value
    raise _EvaluationError(f"the value {_short(value)} does not fit in 64 bits")


def _short(value: int) -> str:
    text = str(value)
    return text if len(text) <= 40 else f"{text[:12]}… ({len(text)} digits)"


def _floor_div(a: int, b: int) -> int:
    if b == 0:
        raise _EvaluationError("division by zero")
    return a // b


def _modulo(a: int, b: int) -> int:
    if b == 0:
        raise _EvaluationError("modulo by zero")
    return a % b


def _ceil_div(a: int, b: int) -> int:
    return -_floor_div(-a, b)


def _is_aligned(address: int, alignment: int) -> bool:
    if not 1 <= alignment <= MAX_ALIGNMENT or alignment & (alignment - 1):
        raise _EvaluationError(f"an alignment is a power of two up to {MAX_ALIGNMENT}, not {alignment}")
    return address % alignment == 0


_BINARY: dict[type[ast.operator], tuple[str, int, Callable[[int, int], int]]] = {
    ast.Add: ("+", _ADD, operator.add),
    ast.Sub: ("-", _ADD, operator.sub),
    ast.Mult: ("*", _MULTIPLY, operator.mul),
    ast.FloorDiv: ("//", _MULTIPLY, _floor_div),
    ast.Mod: ("%", _MULTIPLY, _modulo),
}
_COMPARISONS: dict[type[ast.cmpop], tuple[str, Callable[[int, int], bool]]] = {
    ast.Lt: ("<", operator.lt),
    ast.LtE: ("<=", operator.le),
    ast.Gt: (">", operator.gt),
    ast.GtE: (">=", operator.ge),
    ast.Eq: ("==", operator.eq),
    ast.NotEq: ("!=", operator.ne),
}
_HINTS: dict[type[ast.AST], str] = {
    ast.Div: "`/` is not exact: write `//` or `ceil_div(a, b)`",
    ast.Pow: "`**` is not available: write the product out",
    ast.LShift: "shifts are not available: multiply by a power of two",
    ast.RShift: "shifts are not available: use `//` with a power of two",
    ast.IfExp: "use `when … / otherwise`, `min` or `max`",
    ast.Attribute: "the only attribute is `x.stride(axis)` of an input declared `strided`",
    ast.Subscript: "an expression cannot read array elements",
}
_RULE = (
    "expressions know + - * // %, comparisons, and or not, min max ceil_div, sizeof(T), aligned(x, 16), "
    "tma_ok(x), x.stride(axis), num_sms, max_shared_bytes, repeat_index"
)
_CXX_OPERATORS = {
    "&&": "write `and`",
    r"\|\|": "write `or`",
    r"\?": "write `when … / otherwise`, `min` or `max`",
    "!(?!=)": "write `not`",
}
_Node = tuple[_Function, str, int]


class _Parser:
    """Walks Python's tree once and builds a closure and canonical text for every node."""

    def __init__(self, text: str, place: Locate) -> None:
        self.text = text
        self.place = place
        self.indent = len(text) - len(text.lstrip())
        self.names: set[str] = set()
        self.facts: set[Fact] = set()

    def parse(self) -> _Node:
        if not self.text.strip():
            self.fail("an expression is missing", 0)
        if len(self.text) > MAX_LENGTH:
            self.fail(
                f"an expression may have at most {MAX_LENGTH} characters, this one has {len(self.text)}", 0
            )
        for i, character in enumerate(self.text):
            if not (" " <= character <= "~" or character in "\t\r\n") or character in "#\\":
                self.fail(f"unexpected character {character!r} in an expression", i)
        source = self.text.strip().translate({9: " ", 10: " ", 13: " "})
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse(source, mode="eval")
            return self.visit(tree.body, 0)
        except SyntaxError as error:
            reason, offset = _syntax_error(source, error)
            self.fail(f"`{_clip(source)}` is not an expression: {reason}", self.indent + offset)
        except (RecursionError, MemoryError, ValueError, OverflowError):
            self.fail("the expression is nested too deeply", 0)

    def fail(self, what: str, offset: int) -> NoReturn:
        line, column = self.place(offset)
        raise HeaderError(
            what[0].upper() + what[1:] + ("" if what.endswith(("?", ".")) else "."),
            line=line,
            column=column,
            rule=_RULE,
            received=located(_clip(self.text.strip()) or "nothing", line, column),
            next_step="Rewrite the expression, or compute the value inside the kernel.",
        ) from None

    def fail_at(self, what: str, node: ast.AST) -> NoReturn:
        self.fail(what, self.indent + getattr(node, "col_offset", 0))

    def visit(self, node: ast.expr, depth: int) -> _Node:
        if depth > MAX_DEPTH:
            self.fail_at("the expression is nested too deeply", node)
        method = getattr(self, "visit_" + type(node).__name__, None)
        if method is None:
            hint = _HINTS.get(type(node), "it is not on the list of what an expression may hold")
            self.fail_at(f"`{_clip(self.segment(node))}` cannot stand in an expression: {hint}", node)
        result: _Node = method(node, depth + 1)
        return result

    def segment(self, node: ast.AST) -> str:
        start, end = getattr(node, "col_offset", 0), getattr(node, "end_col_offset", None)
        return self.text.strip()[start:end]

    def visit_Constant(self, node: ast.Constant, _: int) -> _Node:  # noqa: N802 - ast's naming
        value = node.value
        if not isinstance(value, int):
            self.fail_at(f"`{_clip(self.segment(node))}` is not an integer", node)
        if value > INT64_MAX:
            self.fail_at("the integer literal does not fit in 64 bits", node)
        return (lambda _: value), str(value), _ATOM

    def visit_Name(self, node: ast.Name, _: int) -> _Node:  # noqa: N802
        name = node.id
        if name in ("true", "false"):
            value = name == "true"
            return (lambda _: value), str(value), _ATOM
        if name in FUNCTIONS:
            self.fail_at(f"`{name}` is a function: write `{name}(…)`", node)
        self.names.add(name)
        return operator.itemgetter(name), name, _ATOM

    def visit_BinOp(self, node: ast.BinOp, depth: int) -> _Node:  # noqa: N802
        if type(node.op) not in _BINARY:
            hint = _HINTS.get(type(node.op), "the operator is not available")
            self.fail_at(f"`{_clip(self.segment(node))}`: {hint}", node)
        symbol, precedence, apply = _BINARY[type(node.op)]
        left, left_text = self.operand(node.left, precedence, depth)
        right, right_text = self.operand(node.right, precedence + 1, depth)
        return (
            (lambda e: _checked(apply(left(e), right(e)))),
            f"{left_text} {symbol} {right_text}",
            precedence,
        )

    def operand(self, node: ast.expr, minimum: int, depth: int) -> tuple[_Function, str]:
        function, text, precedence = self.visit(node, depth)
        return function, text if precedence >= minimum else f"({text})"

    def visit_UnaryOp(self, node: ast.UnaryOp, depth: int) -> _Node:  # noqa: N802
        if isinstance(node.op, ast.Not):
            operand, text = self.operand(node.operand, _NOT, depth)
            return (lambda e: not operand(e)), f"not {text}", _NOT
        if isinstance(node.op, ast.Invert):
            self.fail_at(f"`{_clip(self.segment(node))}`: `~` is not available", node)
        operand, text = self.operand(node.operand, _UNARY, depth)
        if isinstance(node.op, ast.USub):
            return (lambda e: _checked(-operand(e))), f"-{text}", _UNARY
        return (lambda e: +operand(e)), f"+{text}", _UNARY

    def visit_BoolOp(self, node: ast.BoolOp, depth: int) -> _Node:  # noqa: N802
        is_and = isinstance(node.op, ast.And)
        precedence = _AND if is_and else _OR
        parts = [self.operand(v, precedence + 1, depth) for v in node.values]
        functions = [f for f, _ in parts]
        text = (" and " if is_and else " or ").join(t for _, t in parts)
        if is_and:
            return (lambda e: all(f(e) for f in functions)), text, precedence
        return (lambda e: any(f(e) for f in functions)), text, precedence

    def visit_Compare(self, node: ast.Compare, depth: int) -> _Node:  # noqa: N802
        for op in node.ops:
            if type(op) not in _COMPARISONS:
                self.fail_at(f"`{_clip(self.segment(node))}`: `is` and `in` are not available", node)
        parts = [self.operand(v, _COMPARE + 1, depth) for v in (node.left, *node.comparators)]
        symbols = [_COMPARISONS[type(op)][0] for op in node.ops]
        text = parts[0][1] + "".join(f" {s} {t}" for s, (_, t) in zip(symbols, parts[1:], strict=True))
        functions = [f for f, _ in parts]
        operators = [_COMPARISONS[type(op)][1] for op in node.ops]

        def compare(environment: Environment) -> bool:
            values = [f(environment) for f in functions]
            return all(op(a, b) for op, a, b in zip(operators, values, values[1:], strict=False))

        return compare, text, _COMPARE

    def visit_Call(self, node: ast.Call, depth: int) -> _Node:  # noqa: N802
        if node.keywords or any(isinstance(a, ast.Starred) for a in node.args):
            self.fail_at("functions of an expression take plain arguments", node)
        if isinstance(node.func, ast.Attribute):
            return self.stride(node, node.func)
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name in ("min", "max"):
            if len(node.args) < 2:
                self.fail_at(f"`{name}` takes two or more arguments", node)
            return self.extremum(name, node, depth)
        counts = {"ceil_div": 2, "sizeof": 1, "aligned": 2, "tma_ok": 1}
        if name not in counts:
            near = did_you_mean(name, FUNCTIONS) or "."
            if name == "dim3":
                near = ": write a tuple, as in `<<<(ceil_div(N, 128), M), 128>>>`."
            self.fail_at(f"`{_clip(self.segment(node.func))}` is not a function of expressions{near}", node)
        if len(node.args) != counts[name]:
            self.fail_at(f"`{name}` takes {counts[name]} argument(s), not {len(node.args)}", node)
        if name == "ceil_div":
            (a, a_text), (b, b_text) = (self.operand(v, _OR, depth) for v in node.args)
            return (lambda e: _checked(_ceil_div(a(e), b(e)))), f"ceil_div({a_text}, {b_text})", _ATOM
        subject = node.args[0]
        if not isinstance(subject, ast.Name):
            self.fail_at(
                f"`{name}` takes the name of {'a type' if name == 'sizeof' else 'an array'}", subject
            )
        fact = Fact("address" if name == "aligned" else name, subject.id)
        self.facts.add(fact)
        value = operator.itemgetter(fact.key)
        if name != "aligned":
            return value, fact.key, _ATOM
        alignment, text = self.operand(node.args[1], _OR, depth)
        return (lambda e: _is_aligned(value(e), alignment(e))), f"aligned({subject.id}, {text})", _ATOM

    def extremum(self, name: str, node: ast.Call, depth: int) -> _Node:
        parts = [self.operand(v, _OR, depth) for v in node.args]
        functions = [f for f, _ in parts]
        choose: Callable[..., int] = min if name == "min" else max
        text = f"{name}({', '.join(t for _, t in parts)})"
        return (lambda e: choose(f(e) for f in functions)), text, _ATOM

    def stride(self, node: ast.Call, func: ast.Attribute) -> _Node:
        axis = node.args[0] if len(node.args) == 1 else None
        if func.attr != "stride" or not isinstance(func.value, ast.Name):
            self.fail_at(f"`{_clip(self.segment(node))}`: {_HINTS[ast.Attribute]}", node)
        if not isinstance(axis, ast.Constant) or type(axis.value) is not int:
            self.fail_at("`stride` takes one axis, an integer literal", node)
        fact = Fact("stride", func.value.id, axis.value)
        self.facts.add(fact)
        return operator.itemgetter(fact.key), fact.key, _ATOM


def expression_is_known(expression: Expression, environment: Environment) -> bool:
    """Whether the environment holds every name and fact that `expression` asks for."""
    return expression.names <= environment.keys() and all(f.key in environment for f in expression.facts)


def located(text: str, line: int, column: int) -> str:
    """Return `text` behind its place in the file, where that is known, for the `received` of an error."""
    clipped = _clip(text, 120)
    return f"line {line}, column {column}: {clipped}" if line and column else clipped


def did_you_mean(name: str, known: object) -> str:
    """Return ``; did you mean `…`?`` for the nearest of `known`, or an empty string."""
    from difflib import get_close_matches

    assert isinstance(known, list | tuple | set | frozenset | dict)
    near = get_close_matches(name, sorted(known), 1, 0.6) if name else []
    return f"; did you mean `{near[0]}`?" if near else ""


def _clip(text: str, length: int = 60) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def _syntax_error(source: str, error: SyntaxError) -> tuple[str, int]:
    """Return why `source` is no expression, and the offset of the place."""
    for symbol, advice in _CXX_OPERATORS.items():
        match = re.search(symbol, source)
        if match:
            return f"`{match.group()}` is C++, {advice}", match.start()
    message = error.msg or "invalid syntax"
    if "too many nested" in message:
        message = "it is nested too deeply"
    return message, min(max(error.offset or 1, 1), len(source)) - 1
