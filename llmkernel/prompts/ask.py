"""Builds the request of a question, and keeps the conversation within its budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from llmkernel.prompts.redaction import redact
from llmkernel.prompts.text import encodable, estimate_tokens, fenced
from llmkernel.providers.base import Message, Request

_SYSTEM = Path(__file__).parent / "ask.md"
_FIX = (
    "Give the cause in a sentence or two. Then give the corrected cell: exactly one fenced `python` block that holds the "
    "whole cell as it should be, with nothing left out and nothing changed that need not change."
)
_MIN_REPEATED = 200
_CODE = "Give the code as one fenced `python` block that can run as a cell of this notebook."


@dataclass(frozen=True)
class Section:
    """One part of a question's context.

    Attributes
    ----------
    label : str
        What it is, in a few words: ``x``, ``the error of cell [5]``.
    text : str
        Markdown.
    """

    label: str
    text: str


@dataclass(frozen=True)
class Turn:
    """One question, as it was sent, and its answer."""

    sent: str
    answer: str

    @property
    def tokens(self) -> int:
        """An estimate, right within about 30 %."""
        return estimate_tokens(self.sent, self.answer)


class Conversation:
    """The turns of one notebook session."""

    def __init__(self) -> None:
        self.turns: list[Turn] = []

    def add(self, sent: str, answer: str) -> None:
        """Add a turn that came to its end."""
        self.turns.append(Turn(sent, answer))

    def within(self, tokens: int) -> tuple[list[Turn], int]:
        """Return the newest turns that fit into `tokens`, in order, and how many older ones were dropped."""
        kept: list[Turn] = []
        for turn in reversed(self.turns):
            tokens -= turn.tokens
            if tokens < 0:
                break
            kept.insert(0, turn)
        return kept, len(self.turns) - len(kept)

    def reset(self) -> None:
        """Forget everything."""
        self.turns.clear()


@cache
def ask_system_prompt() -> str:
    """Return the stable part: the same bytes for every question, so that providers cache it."""
    return _SYSTEM.read_text(encoding="utf-8")


def build_ask_request(
    question: str,
    sections: Sequence[Section],
    turns: Sequence[Turn] = (),
    *,
    wants: str = "",
    model: str | None = None,
    effort: str | None = None,
    max_tokens: int | None = None,
) -> Request:
    """Build the request; everything in it is redacted.

    Parameters
    ----------
    question : str
    sections : sequence of Section
        The context, in the order in which it is sent.
    turns : sequence of Turn
        Earlier ones that are sent again.
    wants : str
        ``fix`` for a corrected cell, ``code`` for a block that can run; empty for an answer.
    model, effort, max_tokens
        Passed on; None for the provider's defaults.
    """
    parts = [f"## Context: {section.label}\n\n{_text(section, turns)}" for section in sections]
    parts.append(f"## Question\n\n{question.strip()}")
    parts += [text for text in ({"fix": _FIX, "code": _CODE}.get(wants, ""),) if text]
    messages: list[Message] = []
    for turn in turns:
        messages += [Message("user", turn.sent), Message("assistant", turn.answer)]
    messages.append(Message("user", "\n\n".join(parts)))
    return Request(
        system=ask_system_prompt(),
        messages=tuple(Message(m.role, redact(encodable(m.text))) for m in messages),
        model=model,
        effort=effort,
        max_tokens=max_tokens,
    )


def _text(section: Section, turns: Sequence[Turn]) -> str:
    """Return a section's text, or where it stands already: what has not changed is not sent twice."""
    text = section.text.strip()
    is_repeated = len(text) > _MIN_REPEATED and any(redact(encodable(text)) in turn.sent for turn in turns)
    return "As above, unchanged." if is_repeated else text


def kernel_section(name: str, signature: str, source: str, reference: str, report: str) -> Section:
    """Return what there is to know of a generated kernel.

    Parameters
    ----------
    name, signature : str
    source : str
        Its `.cu` file.
    reference : str
        Python source of what it computes; empty where it is not known.
    report : str
        The report as text: outcome, checks, timing.
    """
    parts = [f"`{name}` has the signature `{signature}`.", fenced(source, "cuda")]
    parts += ["Its reference:\n\n" + fenced(reference, "python")] if reference.strip() else []
    parts.append("Its report:\n\n" + fenced(report))
    return Section(f"kernel {name}", "\n\n".join(parts))
