"""The syntax tree of one function or lambda, and a text of it that is the same in every version of Python."""

from __future__ import annotations

import ast
import dis
import hashlib
import inspect
import linecache
import textwrap
from collections.abc import Iterator
from types import CodeType
from typing import Any

_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

# Fields that differ between Python versions or say nothing about what is computed.
_IGNORED_FIELDS = frozenset(["ctx", "kind", "type_comment"])


def find_definition(code: CodeType) -> _Definition | None:
    """Return the syntax tree of the function or lambda that `code` was compiled from, or None.

    The whole file (or notebook cell) is parsed and the definition located in it: a lambda has no source
    lines of its own, and several may share one line.
    """
    for source, first_line in _sources(code):
        try:
            tree = ast.parse(source)
        except (SyntaxError, ValueError, RecursionError):
            continue
        ast.increment_lineno(tree, first_line - 1)
        found = [node for node in ast.walk(tree) if isinstance(node, _Definition) and _may_be(node, code)]
        if len(found) > 1:
            found = [node for node in found if _covers(node, code)]
        if found:
            # The innermost: of nested lambdas, the outer ones cover the positions of the inner ones too.
            return max(found, key=lambda node: (node.lineno, node.col_offset))
    return None


def canonical_source(node: ast.AST) -> str:
    """Return a text of a syntax tree: equal trees, equal texts, in every version of Python.

    Comments, white space, quotes and parentheses are not in the tree; names, constants and docstrings are.
    """
    return _dump(node)


def code_digest(code: CodeType) -> str:
    """Return a hash of byte code, for functions without source; it depends on the version of Python."""
    parts: list[Any] = [code.co_code, code.co_names, code.co_varnames, code.co_freevars]
    parts.extend(_constant(value) for value in code.co_consts)
    return hashlib.sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()


def global_names(code: CodeType) -> list[str]:
    """Return the global names that a function reads, those of its inner functions included, sorted."""
    return sorted(set(_loads(code)))


def _constant(value: Any) -> Any:
    if isinstance(value, CodeType):
        return code_digest(value)
    # Sets have another order in every process.
    return sorted(map(repr, value)) if isinstance(value, frozenset) else value


def _sources(code: CodeType) -> Iterator[tuple[str, int]]:
    lines = linecache.getlines(code.co_filename)
    if lines:
        yield "".join(lines), 1
    try:  # what only `inspect` finds: files inside archives
        block, first_line = inspect.getsourcelines(code)
    except (OSError, TypeError, SyntaxError, IndexError):
        return
    yield textwrap.dedent("".join(block)), max(first_line, 1)


def _may_be(node: _Definition, code: CodeType) -> bool:
    if isinstance(node, ast.Lambda):
        return code.co_name == "<lambda>" and node.lineno == code.co_firstlineno
    first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
    return node.name == code.co_name and first == code.co_firstlineno


def _covers(node: _Definition, code: CodeType) -> bool:
    # A lambda's code has places in its body only; the body of an outer one holds the inner one as a whole.
    span = node.body if isinstance(node, ast.Lambda) else node
    start = (span.lineno, span.col_offset)
    end = (span.end_lineno or 0, span.end_col_offset or 0)
    for line, end_line, column, end_column in code.co_positions():
        if line is None or end_line is None or column is None or end_column is None:
            continue
        if (line, column) == (end_line, end_column):
            continue  # set-up instructions have no place
        if not (start <= (line, column) and (end_line, end_column) <= end):
            return False
    return True


def _loads(code: CodeType) -> Iterator[str]:
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"):
            yield str(instruction.argval)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _loads(constant)


def _dump(value: Any) -> str:
    if isinstance(value, ast.AST):
        fields = [
            f"{name}={_dump(item)}"
            for name, item in ast.iter_fields(value)
            if name not in _IGNORED_FIELDS and item is not None and item != []
        ]
        if isinstance(value, ast.Constant) and value.value is None:
            fields = ["value=None"]
        return f"{type(value).__name__}({', '.join(fields)})"
    if isinstance(value, list):
        return "[" + ", ".join(_dump(item) for item in value) + "]"
    return repr(value)
