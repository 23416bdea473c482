"""Earlier attempts as conversation turns: the last in full, the others in a line each, in a budget."""

from __future__ import annotations

from collections.abc import Sequence

from llmkernel.prompts.text import clean, cut, cut_log, fenced
from llmkernel.providers.base import Message
from llmkernel.synthesis.events import Attempt

MAX_HISTORY = 60_000
_NO_CANDIDATE = (
    "Your reply held no usable candidate. Reply with exactly one fenced block tagged `cuda` that holds the "
    "whole file: `//!` launch header, then device code with at least one `__global__` function."
)


def turns(attempts: Sequence[Attempt], limit: int = MAX_HISTORY) -> list[Message]:
    """Return an assistant and a user message for each attempt that got a reply.

    Parameters
    ----------
    attempts : sequence of Attempt
        In order; those without a reply are skipped.
    limit : int
        Characters that all turns together may take, about.
    """
    answered = [a for a in attempts if a.reply is not None]
    messages: list[Message] = []
    for attempt in answered[:-1]:
        messages.append(Message("assistant", f"(Candidate {attempt.number} is left out here.)"))
        messages.append(Message("user", _summary(attempt)))
    if answered:
        last = answered[-1]
        room = max(2000, limit - sum(len(m.text) for m in messages))
        source = clean(last.source if last.source is not None else last.reply.text if last.reply else "")
        if last.source is not None:
            shown = fenced(cut(source, room * 2 // 3), "cuda")
        else:
            shown = cut(source.strip(), room // 3) or "(The reply was empty.)"
        messages.append(Message("assistant", shown))
        messages.append(Message("user", _feedback(last, max(1000, room - len(shown)))))
    return messages


def _verdict(attempt: Attempt) -> str:
    report = attempt.report
    if report is None:
        return "no candidate"
    return f"{report.outcome}: {cut(clean(report.headline), 300)}"


def _summary(attempt: Attempt) -> str:
    first = ""
    if attempt.report is not None and attempt.report.feedback.strip():
        first = " " + cut(clean(attempt.report.feedback).strip().splitlines()[0], 200)
    return f"Candidate {attempt.number} — {_verdict(attempt)}{first}\nWrite the next one."


def _feedback(attempt: Attempt, room: int) -> str:
    if attempt.report is None:
        return _NO_CANDIDATE
    parts = [f"Candidate {attempt.number} — {_verdict(attempt)}"]
    feedback = clean(attempt.report.feedback).strip()
    if feedback:
        parts.append(fenced(cut_log(feedback, room)))
    if attempt.report.is_passed:
        parts.append("It is right. Make it faster without losing that, and reply with the complete file.")
    else:
        parts.append("Find the cause, correct it, and reply with the complete file.")
    return "\n\n".join(parts)
