"""Builds the request that a provider gets."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from llmkernel.devices.base import DeviceLimits
from llmkernel.problem.dtypes import DTYPES
from llmkernel.prompts.context import describe_problem
from llmkernel.prompts.device_header import overview
from llmkernel.prompts.history import turns
from llmkernel.prompts.redaction import redact
from llmkernel.prompts.text import estimate_tokens, fenced
from llmkernel.providers.base import Message, Request
from llmkernel.synthesis.events import Attempt

_SYSTEM = Path(__file__).parent / "system.md"


@cache
def system_prompt() -> str:
    """Return the stable part: the same bytes for every problem, so that providers cache it."""
    rows = ["| header | C++ | bytes |", "| --- | --- | --- |"]
    rows += [f"| `{d.name}` | `{d.cxx[0]}` | {d.itemsize} |" for d in DTYPES.values()]
    # Not str.format: the text is full of braces.
    text = _SYSTEM.read_text(encoding="utf-8").replace("{dtypes}", "\n".join(rows))
    return text.replace("{device_header}", fenced(overview()))


def build_request(
    problem: Any,
    *,
    limits: DeviceLimits,
    attempts: Sequence[Attempt] = (),
    model: str | None = None,
    effort: str | None = None,
    max_tokens: int | None = None,
    target_note: str = "",
) -> Request:
    """Build the request for the next attempt; everything in it is redacted.

    Parameters
    ----------
    problem : llmkernel.problem.problem.Problem
    limits : llmkernel.devices.base.DeviceLimits
        Of the device that the candidate will be judged on.
    attempts : sequence of Attempt
        Earlier ones, in order: the last is sent in full, those before it in a line each.
    model, effort, max_tokens
        Passed on; None for the provider's defaults.
    target_note : str
        What is known of the target beyond its limits, such as its measured bandwidth.
    """
    messages = [Message("user", describe_problem(problem, limits, target_note)), *turns(attempts)]
    return Request(
        system=system_prompt(),
        messages=tuple(Message(m.role, redact(m.text)) for m in messages),
        model=model,
        effort=effort,
        max_tokens=max_tokens,
        problem=problem,
    )


def format_prompt(request: Request) -> str:
    """Return the whole prompt as text for a person, exactly as it would be sent."""
    parts = [f"=== system ===\n{request.system}"]
    parts += [f"=== {m.role} ===\n{m.text}" for m in request.messages]
    return "\n".join(part.rstrip("\n") + "\n" for part in parts)


def count_tokens(request: Request) -> int:
    """Estimate the input tokens of a request, right within about 30 %."""
    return estimate_tokens(request.system, *(m.text for m in request.messages))
