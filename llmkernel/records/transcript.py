"""The transcript beside a record: one JSON line an attempt, with secrets redacted."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Protocol

from llmkernel.prompts.redaction import redact_all
from llmkernel.records.fields import plain_json


class _Reply(Protocol):
    @property
    def text(self) -> str: ...
    @property
    def stop_reason(self) -> str: ...
    @property
    def model(self) -> str: ...
    @property
    def usage(self) -> Any: ...
    @property
    def request_id(self) -> str: ...
    @property
    def cost_usd(self) -> float | None: ...


class TranscriptAttempt(Protocol):
    """What a transcript needs of an attempt; `llmkernel.synthesis.events.Attempt` has it."""

    @property
    def number(self) -> int:
        """From 1."""

    @property
    def prompt(self) -> str:
        """The user message of this round."""

    @property
    def reply(self) -> _Reply | None:
        """None when the provider failed."""

    @property
    def report(self) -> Any:
        """None when there was no candidate."""

    @property
    def seconds(self) -> dict[str, float]:
        """Wall seconds by stage."""


def transcript_lines(attempts: Iterable[TranscriptAttempt], *, system: str = "") -> str:
    """Return a transcript: JSON lines, each ended by LF, every string redacted.

    Parameters
    ----------
    attempts : iterable of llmkernel.synthesis.events.Attempt
        In order.
    system : str
        The system prompt, which all attempts share; it becomes a line of its own, before them.
    """
    lines: list[dict[str, Any]] = [{"system": system}] if system else []
    lines += [_attempt(attempt) for attempt in attempts]
    return "".join(
        json.dumps(redact_all(plain_json(line)), sort_keys=True, default=str) + "\n" for line in lines
    )


def _attempt(attempt: TranscriptAttempt) -> dict[str, Any]:
    data: dict[str, Any] = {"number": attempt.number, "prompt": attempt.prompt, "seconds": attempt.seconds}
    if attempt.reply is not None:
        data["reply"] = {
            "text": attempt.reply.text,
            "stop_reason": attempt.reply.stop_reason,
            "model": attempt.reply.model,
            "usage": attempt.reply.usage.to_dict(),
            "request_id": attempt.reply.request_id,
            "cost_usd": attempt.reply.cost_usd,
        }
    if attempt.report is not None:
        report = attempt.report.to_dict()
        data["report"] = {name: report[name] for name in ("outcome", "headline", "feedback")}
    return data
