"""Refusing NumPy arrays that are more than their elements, before a caller takes the elements alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from llmkernel.candidate.domain import VerifiedArgument
from llmkernel.errors import BindingError, LLMKernelError, ReferenceProblem
from llmkernel.problem.arrays import refuse_unusual_array
from llmkernel.problem.dtypes import dtype_name


def plain_only(call: Callable[..., Any], arguments: Sequence[VerifiedArgument]) -> Callable[..., Any]:
    """Return `call` with its NumPy arguments looked at first; `call` itself where it takes none.

    Parameters
    ----------
    call : callable
    arguments : sequence of VerifiedArgument
        What the kernel was verified for, in call order.
    """
    if all(a.kind != "numpy" for a in arguments):
        return call

    def checked(*values: Any) -> Any:
        for argument, value in zip(arguments, values, strict=False):
            if isinstance(value, np.ndarray) and (
                type(value) is not np.ndarray or value.dtype.str[0] in ">|"
            ):
                _refuse(argument.name, value)
        return call(*values)

    return checked


def _refuse(name: str, value: Any) -> None:
    try:
        refuse_unusual_array(name, value)
        dtype_name(value.dtype)
    except LLMKernelError as error:
        is_unusual = isinstance(error, ReferenceProblem)
        raise BindingError(
            error.what if is_unusual else f"`{name}`: {error.what}",
            argument=name,
            reason="kind" if is_unusual else "dtype",
            rule=error.rule,
            received=error.received,
            next_step=error.next_step,
        ) from None
