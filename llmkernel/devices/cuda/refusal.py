"""Why an accepted kernel does not take some arguments, and what it makes of scalars."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from llmkernel.candidate.arguments import ScalarValue
from llmkernel.candidate.domain import VerifiedArgument, VerifiedDomain
from llmkernel.errors import BindingError

_PACK_FLOAT = struct.Struct("d").pack


def refuse(
    argument: VerifiedArgument, what: str, reason: str, *, received: str, next_step: str
) -> BindingError:
    """Return the error for one argument: name, rule, value received, next step."""
    place = ("GPU " if argument.is_on_gpu else "CPU ") if argument.kind == "torch" else ""
    rule = (
        f"`{argument.name}` was verified as a {argument.dtype} scalar"
        if argument.kind == "scalar"
        else f"`{argument.name}` was verified as a {place}{argument.kind} array of {argument.dtype} "
        f"with {argument.rank} axes"
    )
    return BindingError(
        f"`{argument.name}`: {what}",
        argument=argument.name,
        reason=reason,
        rule=rule,
        received=received,
        next_step=next_step,
    )


def check_count(domain: VerifiedDomain, arguments: Sequence[Any]) -> None:
    """Raise `BindingError` unless there are as many arguments as were verified."""
    if len(arguments) != len(domain.arguments):
        names = ", ".join(a.name for a in domain.arguments)
        raise BindingError(
            f"The kernel takes {len(domain.arguments)} arguments, got {len(arguments)}.",
            reason="count",
            rule=f"the arguments are ({names})",
            received=f"{len(arguments)} arguments",
            next_step="Pass all of them by position.",
        )


def scalar_key(argument: VerifiedArgument, value: Any) -> Any:
    """Return what a scalar contributes to the key of a plan: every bit of it.

    1, 1.0 and True are equal in Python, and so are 0.0 and -0.0: a plan has to tell them apart.
    """
    kind = type(value)
    if kind is int:
        return value
    if kind is float:
        return _PACK_FLOAT(value)
    if kind is bool:
        return (kind, value)
    if kind is complex:
        return _PACK_FLOAT(value.real) + _PACK_FLOAT(value.imag)
    return scalar_key(argument, scalar_value(argument, value).value)


def scalar_value(argument: VerifiedArgument, value: Any) -> ScalarValue:
    """Return a Python number; NumPy's scalars become one.

    Raises
    ------
    llmkernel.errors.BindingError
        The argument is not a number.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if not isinstance(value, bool | int | float | complex):
        raise refuse(
            argument,
            f"a number is needed, got {type(value).__name__}.",
            "kind",
            received=type(value).__name__,
            next_step=f"Pass a Python number, such as `{argument.name}.item()`.",
        )
    return ScalarValue(value)


def check_overlap(
    arrays: Sequence[VerifiedArgument], changed: Sequence[int], addresses: Sequence[int], sizes: Sequence[int]
) -> None:
    """Raise `BindingError` when an array that is changed in place shares memory with another argument.

    Parameters
    ----------
    arrays : sequence of VerifiedArgument
        The array arguments, in call order.
    changed : sequence of int
        Indices of those that are changed in place.
    addresses, sizes : sequence of int
        Where each begins, and its bytes.
    """
    for index in changed:
        start, end = addresses[index], addresses[index] + sizes[index]
        for other, argument in enumerate(arrays):
            if other != index and start < addresses[other] + sizes[other] and addresses[other] < end:
                raise refuse(
                    arrays[index],
                    f"it is changed in place and shares memory with `{argument.name}`.",
                    "value",
                    received=f"{min(end, addresses[other] + sizes[other]) - max(start, addresses[other])} shared bytes",
                    next_step=f"Pass a copy as `{argument.name}`.",
                )


def alignment_class(address: int) -> int:
    """Return an address below 4096 that is a multiple of the same powers of two."""
    return (address & -address) & 4095
