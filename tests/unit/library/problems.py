"""Problems as a notebook makes them, for the tests of the library and of the prompts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from llmkernel.problem.problem import Problem, make_problem
from llmkernel.problem.reference import make_reference
from llmkernel.providers.base import Message, Reply, Request
from llmkernel.providers.library import LibraryProvider

RNG = np.random.default_rng(7)


def problem_of(
    function: Callable[..., Any], *inputs: Any, intent: str = "", name: str | None = None
) -> Problem:
    reference, values = make_reference(function, inputs)
    return make_problem(reference, values, intent=intent, name=name)


def normal(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return RNG.standard_normal(shape).astype(dtype)


class ShippedOnly(LibraryProvider):
    """The library without whatever the machine's user has kept."""

    def extra_entries(self) -> tuple[()]:
        return ()


def reply_of(problem: Problem, *, attempts: int = 0, provider: LibraryProvider | None = None) -> Reply:
    """What the library replies after so many earlier attempts."""
    messages = [Message("user", "the problem")]
    for _ in range(attempts):
        messages += [Message("assistant", "a candidate"), Message("user", "it failed")]
    events = list((provider or ShippedOnly()).stream(Request("", tuple(messages), problem=problem)))
    assert isinstance(events[-1], Reply)
    return events[-1]


def entry_of(function: Callable[..., Any], *inputs: Any, **options: Any) -> str:
    """Name of the entry that the library chooses."""
    return str(reply_of(problem_of(function, *inputs, **options)).details["library_entry"])
