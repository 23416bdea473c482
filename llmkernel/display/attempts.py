"""The attempts of a synthesis, one after the other."""

from __future__ import annotations

from llmkernel.display import figures, view
from llmkernel.display.clean import cap, one_line
from llmkernel.display.diff import diff_html, diff_summary
from llmkernel.display.error_map import map_figure
from llmkernel.display.markup import Markup, tag
from llmkernel.display.page import TRANSCRIPT_FILE, Page, tokens_text
from llmkernel.evaluation.report import Report
from llmkernel.synthesis.events import Attempt

MAX_ATTEMPTS = 12
MAX_PROMPT = 2500
MAX_REPLY = 3000
MAX_FEEDBACK = 2500


def attempt_verdict(attempt: Attempt) -> str:
    """Return ``✗ wrong value``, or what kept an attempt from being judged."""
    if attempt.report is not None:
        verdict = view.verdict(attempt.report)
        return f"{verdict.symbol} {verdict.word}"
    if attempt.reply is None:
        return "✗ no reply"
    reasons = {"max_tokens": "✗ reply cut short", "refusal": "✗ refused by the provider"}
    return reasons.get(attempt.reply.stop_reason, "✗ no source in the reply")


def attempts_section(page: Page) -> list[Markup] | None:
    """Return one folded part an attempt; None when there is nothing to tell."""
    if not page.attempts:
        return None
    attempts = list(page.attempts)
    parts = []
    left = len(attempts) - MAX_ATTEMPTS
    if left > 0:
        parts.append(tag("p", f"The first {left} are in {TRANSCRIPT_FILE}.", cls="mut"))
    previous = None if left <= 0 else attempts[left - 1].source
    for attempt in attempts[max(left, 0) :]:
        parts.append(attempt_part(attempt, previous))
        previous = attempt.source or previous
    return parts


def attempt_part(attempt: Attempt, previous: str | None, *more: Markup | None) -> Markup:
    """Return one folded attempt; `previous` is the source of the one before it, `more` stands above the sources."""
    usage = attempt.reply.usage if attempt.reply else None
    cost = figures.money(attempt.reply.cost_usd) if attempt.reply else ""
    seconds = [f"{one_line(k, 20)} {figures.seconds(v)}" for k, v in attempt.seconds.items()]
    meta = " · ".join(p for p in (", ".join(seconds), tokens_text(usage), cost) if p)
    title = f"Attempt {attempt.number}: {attempt_verdict(attempt)}"
    headline = tag("p", one_line(attempt.report.headline, 600)) if attempt.report else None
    feedback = cap(attempt.report.feedback, MAX_FEEDBACK, TRANSCRIPT_FILE) if attempt.report else ""
    return tag(
        "details",
        tag("summary", title),
        headline,
        tag("p", meta, cls="meta") if meta else None,
        picture_of(attempt.report) if attempt.report else None,
        *more,
        _source(attempt, previous),
        _folded("What it was told", feedback),
        _folded("Prompt", cap(attempt.prompt, MAX_PROMPT, TRANSCRIPT_FILE)),
    )


def picture_of(report: Report) -> Markup | None:
    """Return where the result that failed is wrong."""
    pictures = (map_figure(c.evidence) for c in report.checks if c.status == "failed")
    return next((p for p in pictures if p is not None), None)


def _source(attempt: Attempt, previous: str | None) -> Markup | None:
    if attempt.source is not None and previous is not None:
        changes = diff_html(previous, attempt.source, where=TRANSCRIPT_FILE)
        title = f"Changes to the source: {diff_summary(previous, attempt.source)}"
        return tag("details", tag("summary", title), changes)
    if attempt.source is not None:
        return _folded("First source", cap(attempt.source, 8000, TRANSCRIPT_FILE))
    return _folded("Reply", cap(attempt.reply.text, MAX_REPLY, TRANSCRIPT_FILE)) if attempt.reply else None


def _folded(title: str, text: str) -> Markup | None:
    if not text.strip():
        return None
    return tag("details", tag("summary", title), tag("pre", text, cls="log", tabindex="0"))
