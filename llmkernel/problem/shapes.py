"""Symbolic shapes: from jaxtyping annotations, or from the sizes of the example with equal sizes tied."""

from __future__ import annotations

import itertools
import keyword
import re
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from llmkernel.errors import ReferenceProblem
from llmkernel.problem.names import header_name

Dims = tuple[str, ...]

# The letters that the field uses, by the rank of the first array.
_LETTERS: dict[int, tuple[str, ...]] = {
    1: ("N", "M", "K"),
    2: ("M", "N", "K"),
    3: ("B", "M", "N", "K"),
    4: ("B", "H", "M", "N", "K"),
}
_MORE = ("L", "P", "Q", "R", "S", "U", "V", "W", "D", "E", "F", "G")
_TOKEN = re.compile(r"^(?P<flags>[*#?_]*)(?P<rest>.*)$")


def annotation_dims(function: Callable[..., Any]) -> dict[str, list[str]]:
    """Return the dimension tokens of jaxtyping annotations by parameter name (``return`` for the result).

    Annotations that are not jaxtyping's are left out; several results give ``return`` only when the annotation is a
    single array.
    """
    target = getattr(function, "forward", function)
    try:
        hints = typing.get_type_hints(target)
    except (NameError, TypeError, AttributeError):
        hints = dict(getattr(target, "__annotations__", {}))
    found: dict[str, list[str]] = {}
    for name, hint in hints.items():
        text = getattr(hint, "dim_str", None)
        if isinstance(text, str):
            found[name] = text.split()
    return found


def symbolic_dims(
    function: Callable[..., Any], shapes: Mapping[str, tuple[int, ...]], taken: Iterable[str] = ()
) -> tuple[dict[str, Dims], dict[str, int]]:
    """Give every axis of every input a symbol or a literal.

    Parameters
    ----------
    function : callable
        The reference; its jaxtyping annotations count.
    shapes : mapping
        Example shape by input name.
    taken : iterable of str
        Names that symbols must not use: the parameters' own.

    Returns
    -------
    dims : dict
        Input name to one text an axis: a symbol, or digits for a fixed size.
    sizes : dict
        Symbol to its size in the example.

    Raises
    ------
    llmkernel.errors.ReferenceProblem
        When the example contradicts an annotation.
    """
    annotated = annotation_dims(function)
    sizes: dict[str, int] = {}
    dims: dict[str, Dims] = {}
    symbols: dict[str, str] = {}
    for name, shape in shapes.items():
        if name in annotated:
            dims[name] = _annotated(name, annotated[name], shape, sizes, symbols)
    pool = _names([s for n, s in shapes.items() if n not in dims], {*taken, *sizes})
    for name, shape in shapes.items():
        if name not in dims:
            dims[name] = tuple(_inferred(size, sizes, pool) for size in shape)
    return {name: dims[name] for name in shapes}, sizes


def symbol_names(shapes: Mapping[str, tuple[int, ...]], taken: Iterable[str]) -> list[str]:
    """Return the symbols that `symbolic_dims` gives, in order."""
    return _names(list(shapes.values()), set(taken))


def _names(shapes: Sequence[tuple[int, ...]], taken: set[str]) -> list[str]:
    rank = max((len(s) for s in shapes), default=1)
    letters = _LETTERS.get(rank, ())
    lower = {t.lower() for t in taken}
    pool = [n for n in (*letters, *(m for m in _MORE if m not in letters)) if n.lower() not in lower]
    return pool + [f"D{i}" for i in range(64)]


def _inferred(size: int, sizes: dict[str, int], pool: list[str]) -> str:
    if size == 1:
        # An axis of one element usually broadcasts: another size would be another problem.
        return "1"
    for symbol, known in sizes.items():
        if known == size:
            return symbol
    symbol = next(n for n in itertools.chain(pool, map("D{}".format, itertools.count(64))) if n not in sizes)
    sizes[symbol] = size
    return symbol


def _annotated(
    name: str, tokens: list[str], shape: tuple[int, ...], sizes: dict[str, int], symbols: dict[str, str]
) -> Dims:
    tokens = _expand(name, tokens, shape)
    if len(tokens) != len(shape):
        raise ReferenceProblem(
            f"{name} has {len(shape)} axes; its annotation names {len(tokens)}.",
            rule="the example input fits the annotation",
            received=f"shape {list(shape)}",
            next_step=f'Correct the annotation "{" ".join(tokens)}" or the example.',
        )
    out: list[str] = []
    for axis, (token, size) in enumerate(zip(tokens, shape, strict=True)):
        match = _TOKEN.match(token)
        assert match is not None
        text = match["rest"].split("=")[-1]
        if size == 1 and ("#" in match["flags"] or not text):
            out.append("1")
        elif text.isascii() and text.isdigit():
            if int(text) != size:
                raise _contradiction(name, axis, token, size, int(text))
            out.append(text)
        else:
            own = f"{name}_{axis}"
            if text and text not in symbols:
                symbols[text] = _symbol(text, own, symbols.values())
            # "_" or "…" has a symbol of its own, and so has what a header cannot write, tied only to equal texts.
            symbol = symbols.get(text, own)
            if sizes.setdefault(symbol, size) != size:
                if text.isidentifier():
                    raise _contradiction(name, axis, token, size, sizes[symbol])
                symbol, sizes[own] = own, size
            out.append(symbol)
    return tuple(out)


def _symbol(text: str, otherwise: str, taken: Iterable[str]) -> str:
    """Return `text` as a header can write it, and as nothing else is written."""
    symbol = header_name(re.sub(r"[^A-Za-z0-9_]+", "_", text).strip("_"), otherwise)
    if keyword.iskeyword(symbol):
        symbol = otherwise
    taken = set(taken)
    while symbol in taken:
        symbol += "_"
    return symbol


def _expand(name: str, tokens: list[str], shape: tuple[int, ...]) -> list[str]:
    variadic = [
        i for i, t in enumerate(tokens) if t == "..." or t.lstrip("#?_").startswith("*") or t.startswith("*")
    ]
    if not variadic:
        return tokens
    at = variadic[0]
    stem = tokens[at].strip("*#?_.") or name
    count = max(0, len(shape) - len(tokens) + 1)
    return tokens[:at] + [f"{stem}_{i}" for i in range(count)] + tokens[at + 1 :]


def _contradiction(name: str, axis: int, token: str, size: int, expected: int) -> ReferenceProblem:
    return ReferenceProblem(
        f"Axis {axis} of {name} has size {size}; the annotation {token!r} says {expected}.",
        rule="equal names in jaxtyping annotations have equal sizes",
        received=f"size {size}",
        next_step="Correct the annotation or the example input.",
    )


def fit_output_dims(
    observed: Sequence[tuple[Mapping[str, int], tuple[int, ...]]], scalars: Mapping[str, int]
) -> Dims | None:
    """Find an expression for each axis of a result that explains every observed shape.

    Parameters
    ----------
    observed : sequence of (sizes, shape)
        Sizes by symbol, and the result's shape at those sizes; the example first.
    scalars : mapping
        Integer scalar inputs with their values, candidates too (``k`` of a top-k).

    Returns
    -------
    tuple of str or None
        None when the ranks differ.
    """
    ranks = {len(shape) for _, shape in observed}
    if len(ranks) != 1:
        return None
    symbols = list(observed[0][0])
    forms = [*symbols, *scalars, *_expressions(symbols)]
    dims = []
    for axis in range(ranks.pop()):
        sizes = [shape[axis] for _, shape in observed]
        if len(observed) > 1 and len(set(sizes)) == 1:
            named = next((k for k, v in scalars.items() if v == sizes[0]), None)
            dims.append(named or str(sizes[0]))
            continue
        found = next(
            (
                f
                for f in forms
                if all(_value(f, env, scalars) == n for (env, _), n in zip(observed, sizes, strict=True))
            ),
            None,
        )
        dims.append(found or str(sizes[0]))
    return tuple(dims)


def explains_shapes(dims: Dims | None, observed: Sequence[tuple[Mapping[str, int], tuple[int, ...]]]) -> bool:
    """Whether expressions give every observed shape at its sizes."""
    return dims is not None and all(
        tuple(_value(d, sizes, {}) for d in dims) == tuple(shape) for sizes, shape in observed
    )


def _expressions(symbols: Sequence[str]) -> list[str]:
    one = [
        f for s in symbols for f in (f"{s} + 1", f"{s} - 1", f"{s} - 2", f"{s} + 2", f"2 * {s}", f"{s} // 2")
    ]
    two = [
        f
        for i, a in enumerate(symbols)
        for b in symbols[i:]
        for f in (
            f"{a} * {b}",
            f"{a} + {b}",
            f"{a} + {b} - 1",
            f"{a} - {b} + 1",
            f"{b} - {a} + 1",
            f"{a} - {b}",
        )
    ]
    return one + two


def _value(form: str, sizes: Mapping[str, int], scalars: Mapping[str, int]) -> int:
    # The forms are our own texts over known names: two or three words, never a user's.
    environment = {**scalars, **sizes}
    words = form.split()
    total = _word(words[0], environment)
    for operator, word in zip(words[1::2], words[2::2], strict=True):
        other = _word(word, environment)
        total = {"+": total + other, "-": total - other, "*": total * other}.get(
            operator, total // other if other else 0
        )
    return total


def _word(word: str, environment: Mapping[str, int]) -> int:
    return int(word) if word.isdigit() else environment[word]
