"""Equal sizes of one array of the example: the reference says whether they have to be equal.

A square example is what people have at hand. Taken at its word it makes a problem of `x: float32[M, M]`, and a kernel that
was proved on squares may be called with squares alone. Where the reference computes other shapes too, the axes get symbols
of their own. Sizes that are equal only between arrays stay tied: `a + b` means arrays of one length.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from llmkernel.candidate.expressions import parse_expression
from llmkernel.errors import LLMKernelError
from llmkernel.problem.shapes import Dims, annotation_dims, explains_shapes, fit_output_dims
from llmkernel.problem.signature import ArraySpec
from llmkernel.problem.workloads import draw_inputs

if TYPE_CHECKING:
    from llmkernel.problem.problem import Problem, ReferenceRun

Axis = tuple[str, int]
# Every assignment costs two small runs of the reference.
_MOST_TRIES = 60
_MOST_AXES = 6
_ASCENDING = (37, 41, 43, 47, 53, 59)


def untie(problem: Problem, dims: Mapping[str, Dims], names: Sequence[str], run: ReferenceRun) -> None:
    """Untie axes of one array that the example makes equal, where the reference computes other shapes too."""
    parameters = problem.reference.parameters
    annotated = annotation_dims(problem.reference.function)

    def changed(new: Mapping[str, Dims], sizes: Mapping[str, int]) -> Problem:
        inputs = tuple(
            replace(s, dims=tuple(parse_expression(d) for d in new[p])) if isinstance(s, ArraySpec) else s
            for p, s in zip(parameters, problem.signature.inputs, strict=True)
        )
        signature = replace(problem.signature, inputs=inputs)
        return replace(problem, signature=signature, sizes=dict(sizes))

    def accepts(new: Mapping[str, Dims], probes: Sequence[Mapping[str, int]]) -> bool:
        observed: list[list[tuple[Mapping[str, int], tuple[int, ...]]]] = [
            [(_example_sizes(new, dims, problem.sizes), r.shape)] for r in run.results
        ]
        for sizes in probes:
            other = changed(new, sizes)
            try:
                seen = other.run_reference(draw_inputs(other, dict(sizes), "normal", seed=1))
            except LLMKernelError:
                return False
            if len(seen.results) != len(observed):
                return False
            for shapes, result in zip(observed, seen.results, strict=True):
                shapes.append((sizes, result.shape))
        return all(explains_shapes(fit_output_dims(shapes, {}), shapes) for shapes in observed)

    new, sizes = untied(dims, problem.sizes, [p for p in dims if p not in annotated], names, accepts)
    other = changed(new, sizes)
    problem.signature, problem.sizes = other.signature, other.sizes


def _example_sizes(
    new: Mapping[str, Dims], old: Mapping[str, Dims], sizes: Mapping[str, int]
) -> dict[str, int]:
    """Return the example's size of every new symbol."""
    return {
        text: sizes[before]
        for name, texts in new.items()
        for text, before in zip(texts, old[name], strict=True)
        if before in sizes
    }


def untied(
    dims: Mapping[str, Dims],
    sizes: Mapping[str, int],
    free: Sequence[str],
    names: Sequence[str],
    accepts: Callable[[Mapping[str, Dims], Sequence[Mapping[str, int]]], bool],
) -> tuple[dict[str, Dims], dict[str, int]]:
    """Give tied axes of one array symbols of their own, as far as the reference accepts it.

    Parameters
    ----------
    dims : mapping
        Input name to one text an axis, in which equal sizes are tied.
    sizes : mapping
        Symbol to its size in the example.
    free : sequence of str
        Inputs whose axes nobody annotated.
    names : sequence of str
        Symbols that may be given, in order.
    accepts : callable
        Whether the reference computes results, of shapes that follow from the symbols, with these dims at each of several
        assignments of sizes.

    Returns
    -------
    dims, sizes : dict
        In the form of the arguments.
    """
    now, known = {k: tuple(v) for k, v in dims.items()}, dict(sizes)
    tries = 0
    for symbol in list(sizes):
        axes = [(name, i) for name, texts in now.items() for i, text in enumerate(texts) if text == symbol]
        repeated = any(sum(other == name for other, _ in axes) > 1 for name, _ in axes)
        if not repeated or len(axes) > _MOST_AXES or any(name not in free for name, _ in axes):
            continue
        for classes in _partitions(len(axes)):
            tries += 1
            if tries > _MOST_TRIES:
                break
            given = _named(symbol, max(classes) + 1, known, names)
            if given is None:
                break
            changed = _with_symbols(now, axes, [given[c] for c in classes])
            wanted = known | dict.fromkeys(given, known[symbol])
            if accepts(changed, [_probe(wanted, given, order) for order in (1, -1)]):
                now, known = changed, wanted
                break
    order = [text for texts in now.values() for text in texts if text in known]
    return now, {symbol: known[symbol] for symbol in dict.fromkeys([*order, *known])}


def _probe(sizes: Mapping[str, int], given: Sequence[str], order: int) -> dict[str, int]:
    """Return sizes at which the given symbols are small and all differ, ascending or descending."""
    primes = [p for p in _ASCENDING if p not in sizes.values()][: len(given)]
    return {**sizes, **dict(zip(given, primes[::order], strict=False))}


def _named(symbol: str, count: int, known: Mapping[str, int], names: Sequence[str]) -> list[str] | None:
    more = [n for n in names if n not in known][: count - 1]
    return [symbol, *more] if len(more) == count - 1 else None


def _with_symbols(dims: Mapping[str, Dims], axes: Sequence[Axis], symbols: Sequence[str]) -> dict[str, Dims]:
    given = dict(zip(axes, symbols, strict=True))
    return {
        name: tuple(given.get((name, i), text) for i, text in enumerate(texts))
        for name, texts in dims.items()
    }


def _partitions(count: int) -> Iterator[tuple[int, ...]]:
    """Yield every way to put axes into at least two classes, most classes first: the class of each, first ones lowest."""

    def grown(prefix: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if len(prefix) == count:
            yield prefix
            return
        for c in range(max(prefix, default=-1) + 2):
            yield from grown((*prefix, c))

    yield from sorted((p for p in grown(()) if max(p) > 0), key=lambda p: -max(p))
