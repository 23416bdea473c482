"""Refusing sizes that were never verified: what the problem says of them and the launch header does not.

A square example makes a problem of `x: float32[M, M]`, one row a problem of `x: float32[1, N]`. A candidate under the
header `x: float32[M, N]` passes on such arrays alone, so they are all that it may be called with.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llmkernel.errors import BindingError
from llmkernel.problem.signature import ArraySpec, Signature

# Argument and axis.
Axis = tuple[int, int]


def same_sizes_only(
    call: Callable[..., Any], problem: Signature, header: Signature, names: Sequence[str]
) -> Callable[..., Any]:
    """Return `call` with its arguments' sizes looked at first; `call` itself where the header says as much as the problem.

    Parameters
    ----------
    call : callable
    problem, header : Signature
        What was verified, and what the launch header takes.
    names : sequence of str
        The arguments in the user's words, in call order.
    """
    tied = tied_axes(problem, header)
    if not tied:
        return call

    def checked(*values: Any) -> Any:
        for place, other in tied:
            size = _size(values, place)
            wanted = other if isinstance(other, int) else _size(values, other)
            # What has another rank, or is no array, is refused by the header.
            if size is not None and wanted is not None and size != wanted:
                _refuse(problem, names, values, place, other)
        return call(*values)

    return checked


def tied_axes(problem: Signature, header: Signature) -> list[tuple[Axis, Axis | int]]:
    """Return axes that the header leaves free, each with the axis or the number that it is equal to in the problem."""
    firsts: dict[str, tuple[Axis, str]] = {}
    tied: list[tuple[Axis, Axis | int]] = []
    for argument, (wanted, taken) in enumerate(zip(problem.inputs, header.inputs, strict=False)):
        if not isinstance(wanted, ArraySpec) or not isinstance(taken, ArraySpec):
            continue
        for axis, (dimension, size) in enumerate(zip(wanted.dims, taken.dims, strict=False)):
            place, word = (argument, axis), str(dimension)
            if word.isdecimal():
                tied += [] if str(size) == word else [(place, int(word))]
                continue
            first, known = firsts.setdefault(word, (place, str(size)))
            tied += [] if known == str(size) else [(place, first)]
    return tied


def _size(values: Sequence[Any], place: Axis) -> int | None:
    argument, axis = place
    shape = getattr(values[argument], "shape", ()) if argument < len(values) else ()
    return int(shape[axis]) if len(shape) > axis else None


def _refuse(
    problem: Signature, names: Sequence[str], values: Sequence[Any], place: Axis, other: Axis | int
) -> None:
    def told(axis: Axis) -> str:
        return f"axis {axis[1]} of `{names[axis[0]]}` is {_size(values, axis)}"

    name = names[place[0]]
    shown = [place] if isinstance(other, int) else [other, place]
    received = dict.fromkeys(f"`{names[argument]}` {tuple(values[argument].shape)}" for argument, _ in shown)
    raise BindingError(
        f"`{name}`: {' and '.join(told(axis) for axis in shown)}.",
        argument=name,
        reason="shape",
        rule=f"it was verified for {problem}: axes of one name have one size, and a number is a size",
        received=", ".join(received),
        next_step="Give an example in which all sizes differ and none is 1, as a (33, 70) array, and generate it again.",
    )
