"""What the source of a reference says of its inputs: numbers that they are compared with, lengths, searches, factors.

A draw that ignores these is no input of the problem (a search in an array without order) or leaves out what the reference
provides for (a label that is ignored, a row without elements). Only plain uses of a parameter count: where the source is
not to be had, or a name is assigned again, nothing is known.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from llmkernel.problem.reference import Reference

Number = int | float

# Which argument of a search must be in order, and the keywords that name it.
_SEARCHES: dict[str, tuple[int, frozenset[str]]] = {
    "searchsorted": (0, frozenset(("a", "sorted_sequence"))),
    "bucketize": (1, frozenset(("boundaries",))),
    "digitize": (1, frozenset(("bins",))),
    "interp": (1, frozenset(("xp",))),
}
# Methods whose result holds the values of the array that they are called on.
_SAME_VALUES = frozenset(
    (
        *("astype", "double", "float", "int", "long", "to"),
        *("copy", "contiguous", "numpy"),
        *("expand", "flatten", "ravel", "reshape", "squeeze", "unsqueeze", "view"),
    )
)
_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow)
_ELEMENTARY = frozenset(
    ("abs", "cos", "exp", "float", "log", "maximum", "minimum", "sin", "sqrt", "tanh", "where")
)
_MOST_MARKS = 8


@dataclass(frozen=True)
class Usage:
    """How a reference uses one input.

    Attributes
    ----------
    marks : tuple of int or float
        Numbers that its elements are compared with; of an inequality, those on both sides.
    is_length : bool
        Compared with positions: ``arange(n) < lengths``.
    is_sorted : bool
        Searched in, which needs elements in order.
    is_strict : bool
        Searched in, and no two elements may be equal.
    is_number : bool
        A scalar of plain arithmetic: nothing is repeated, sliced or shaped by it.
    """

    marks: tuple[Number, ...] = ()
    is_length: bool = False
    is_sorted: bool = False
    is_strict: bool = False
    is_number: bool = False


UNKNOWN = Usage()


def usages(reference: Reference) -> dict[str, Usage]:
    """Return what is known of each parameter; those of which nothing is known are left out."""
    direct = _search_itself(reference)
    if direct:
        return direct
    try:
        tree = ast.parse(reference.source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    function = _definition(tree, reference)
    if function is None:
        return {}
    assigned = {
        n.id for n in ast.walk(function) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)
    }
    parameters = frozenset(reference.parameters) - assigned
    positions = frozenset(_positions(function))
    known = _numbers(reference)
    marks: dict[str, dict[Number, None]] = {}
    lengths, ordered, strict = set(), set(), set()
    for node in ast.walk(function):
        if isinstance(node, ast.Compare):
            for left, operator, right in _pairs(node):
                for one, other, turned in ((left, right, False), (right, left, True)):
                    name = _root(one)
                    if name not in parameters:
                        continue
                    number = _number(other, known)
                    if number is not None:
                        marks.setdefault(name, {}).update(
                            dict.fromkeys(_around(operator, number, turned=turned))
                        )
                    elif _holds_positions(other, positions):
                        lengths.add(name)
        elif isinstance(node, ast.Call):
            name = _searched(node)
            if name in parameters:
                ordered.add(name)
                if _called(node) == "interp":
                    strict.add(name)
    numbers = set(_only_numbers(function, parameters, known))
    return {
        name: Usage(
            tuple(marks.get(name, ()))[:_MOST_MARKS],
            is_length=name in lengths,
            is_sorted=name in ordered,
            is_strict=name in strict,
            is_number=name in numbers,
        )
        for name in marks.keys() | lengths | ordered | numbers
    }


def _search_itself(reference: Reference) -> dict[str, Usage]:
    """Return the usage of a search of NumPy's or torch's that is itself the reference."""
    function = reference.function
    name, module = getattr(function, "__name__", ""), getattr(function, "__module__", None) or ""
    if name not in _SEARCHES or module.split(".")[0] not in ("numpy", "torch", "cupy"):
        return {}
    place = _SEARCHES[name][0]
    if place >= len(reference.parameters):
        return {}
    return {reference.parameters[place]: Usage(is_sorted=True, is_strict=name == "interp")}


def _definition(tree: ast.Module, reference: Reference) -> ast.AST | None:
    if reference.is_module:
        found = (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == "forward")
    else:
        name = getattr(inspect.unwrap(reference.function), "__name__", "")
        found = (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == name)
    function = next(found, None)
    if function is not None:
        return function
    lambdas = [n for n in ast.walk(tree) if isinstance(n, ast.Lambda)]
    return lambdas[0] if len(lambdas) == 1 else None


def _only_numbers(
    function: ast.AST, parameters: frozenset[str], known: Mapping[str, Number]
) -> Iterator[str]:
    """Yield parameters that are only operands: of arithmetic and of elementary functions, in a body without loops."""
    nodes = list(ast.walk(function))
    if any(isinstance(n, ast.For | ast.While | ast.comprehension) for n in nodes):
        return
    above = {child: n for n in nodes for child in ast.iter_child_nodes(n)}
    uses: dict[str, list[ast.Name]] = {}
    for node in nodes:
        if isinstance(node, ast.Name) and node.id in parameters:
            uses.setdefault(node.id, []).append(node)
    for name, found in uses.items():
        if all(_is_operand(node, above, known) for node in found):
            yield name


def _is_operand(node: ast.AST, above: Mapping[ast.AST, ast.AST], known: Mapping[str, Number]) -> bool:
    is_operand = False
    while True:
        child, node = node, above[node]
        if isinstance(node, ast.BinOp):
            if not isinstance(node.op, _ARITHMETIC):
                return False
            # Of an array's power, an error as large as the exponent is nobody's mistake.
            if isinstance(node.op, ast.Pow) and child is node.right and _number(node.left, known) is None:
                return False
            is_operand = True
        elif isinstance(node, ast.Call):
            if child is node.func or _called(node) not in _ELEMENTARY:
                return False
        elif isinstance(node, ast.Assign | ast.AugAssign | ast.Return | ast.Lambda):
            return is_operand
        elif not isinstance(node, ast.UnaryOp | ast.Tuple):
            return False


def _positions(function: ast.AST) -> Iterator[str]:
    """Yield names that hold positions: assigned from what calls ``arange``."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and _holds_positions(node.value, frozenset()):
            yield from (t.id for t in node.targets if isinstance(t, ast.Name))


def _holds_positions(node: ast.AST, names: frozenset[str]) -> bool:
    """Whether an expression is ``arange(…)``, a name for it, or a view of either."""
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    if isinstance(node, ast.Call):
        if _called(node) == "arange":
            return True
        is_view = isinstance(node.func, ast.Attribute) and node.func.attr in _SAME_VALUES
        return is_view and isinstance(node.func, ast.Attribute) and _holds_positions(node.func.value, names)
    return isinstance(node, ast.Name) and node.id in names


def _pairs(node: ast.Compare) -> Iterator[tuple[ast.expr, ast.cmpop, ast.expr]]:
    left = node.left
    for operator, right in zip(node.ops, node.comparators, strict=True):
        yield left, operator, right
        left = right


def _root(node: ast.AST) -> str | None:
    """Return the name of the array whose values an expression holds: of ``t[:, None]``, ``t.reshape(-1)``, ``t``."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Subscript):
        return _root(node.value)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _SAME_VALUES:
        return _root(node.func.value)
    return None


def _number(node: ast.AST, known: Mapping[str, Number]) -> Number | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inside = _number(node.operand, known)
        return None if inside is None else -inside
    if isinstance(node, ast.Constant) and _is_number(node.value):
        return node.value  # type: ignore[return-value]
    return known.get(node.id) if isinstance(node, ast.Name) else None


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and bool(np.isfinite(float(value)))


def _numbers(reference: Reference) -> dict[str, Number]:
    """Return the numbers that names of the reference stand for: its globals, closure and defaults."""
    target: Any = reference.function
    function = inspect.unwrap(type(target).forward if reference.is_module else target)
    found: dict[str, Any] = dict(getattr(function, "__globals__", {}))
    code, cells = getattr(function, "__code__", None), getattr(function, "__closure__", None) or ()
    for name, cell in zip(getattr(code, "co_freevars", ()), cells, strict=False):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    found.update(reference.fixed)
    return {k: v for k, v in found.items() if _is_number(v) and k not in reference.parameters}


def _around(operator: ast.cmpop, number: Number, *, turned: bool) -> tuple[Number, ...]:
    """Return the numbers on both sides of where a comparison changes; of whole numbers, the neighbour too."""
    if isinstance(number, float) or isinstance(operator, ast.Eq | ast.NotEq):
        return (number,)
    if isinstance(operator, ast.Gt | ast.LtE):
        return (number, number - 1 if turned else number + 1)
    if isinstance(operator, ast.Lt | ast.GtE):
        return (number, number + 1 if turned else number - 1)
    return ()


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def _searched(node: ast.Call) -> str | None:
    """Return the name of the array that a call searches in."""
    found = _SEARCHES.get(_called(node))
    if found is None or any(k.arg == "sorter" for k in node.keywords):
        return None
    place, keywords = found
    named = next((k.value for k in node.keywords if k.arg in keywords), None)
    if named is not None:
        return _root(named)
    if isinstance(node.func, ast.Attribute) and _called(node) == "searchsorted" and len(node.args) == 1:
        return _root(node.func.value)  # a.searchsorted(v)
    return _root(node.args[place]) if place < len(node.args) else None
