"""The parts of the live view as HTML; each is made anew only when what it shows has changed."""

from __future__ import annotations

from collections.abc import Sequence

from llmkernel.display import figures
from llmkernel.display.attempts import attempt_part, attempt_verdict
from llmkernel.display.clean import cap, one_line
from llmkernel.display.compare import compare_html
from llmkernel.display.html_timing import timing_section
from llmkernel.display.live_state import LiveState, Prompt
from llmkernel.display.live_view import live_content, live_label
from llmkernel.display.markup import Markup, tag
from llmkernel.display.page import TRANSCRIPT_FILE
from llmkernel.synthesis.events import Attempt

MAX_PART = 20_000


def now_html(state: LiveState, now: float) -> Markup:
    """Return what goes on."""
    return tag("div", live_content(state, now), role="region", aria_label=live_label(state))


def announcement(state: LiveState) -> str:
    """Return the sentence that a screen reader is told: it changes where something begins or ends, not with time."""
    if state.closing:
        return f"{state.name}: {state.closing}"
    stage = state.stages[-1].name if state.stages else "starting"
    last = f"Attempt {state.finished[-1].number}: {_word(state.finished[-1])}. " if state.finished else ""
    return f"{state.name}: {last}{stage}"


def _word(attempt: Attempt) -> str:
    return attempt_verdict(attempt).partition(" ")[2]


def sent_html(prompt: Prompt, earlier: Sequence[tuple[str, str]]) -> Markup:
    """Return what was sent, folded; parts that were sent before are named only."""
    parts: list[Markup] = []
    repeated = 0
    for role, text in prompt.messages:
        if (role, text) in earlier:
            repeated += 1
            continue
        title = f"{one_line(role, 20)}, {figures.grouped(len(text))} characters"
        parts.append(tag("p", tag("strong", title)))
        body = cap(text, MAX_PART, TRANSCRIPT_FILE)
        parts.append(tag("pre", body, cls="log", tabindex="0", aria_label=f"Sent as {one_line(role, 20)}"))
    if repeated:
        note = f"Before it, {figures.plural(repeated, 'part')} as in the attempts above."
        parts.insert(0, tag("p", note, cls="mut"))
    tokens = f" – about {figures.grouped(prompt.tokens)} tokens" if prompt.tokens else ""
    summary = tag("summary", f"What was sent, attempt {prompt.attempt}", tag("span", tokens, cls="mut"))
    return tag("div", tag("details", summary, *parts), cls="part")


def attempt_html(attempt: Attempt, previous: str | None) -> Markup:
    """Return one finished attempt, folded: with its timing where it was timed."""
    timing = attempt.report.timing if attempt.report is not None else None
    bars = timing_section(timing) if timing is not None else None
    return tag("div", attempt_part(attempt, previous, bars), cls="part")


def choices(attempts: Sequence[Attempt]) -> list[tuple[str, int]]:
    """Return label and number of each attempt that has a source."""
    return [(f"attempt {a.number} {attempt_verdict(a)}", a.number) for a in attempts if a.source is not None]


def comparison_html(attempts: Sequence[Attempt], chosen: Sequence[int]) -> Markup:
    """Return the sources of two attempts side by side, `chosen` by their numbers."""
    by_number = {a.number: a for a in attempts}
    pair = [by_number[n] for n in chosen if n in by_number]
    if len(pair) != 2 or pair[0].source is None or pair[1].source is None:
        return tag("div", tag("p", "Choose two of them.", cls="mut"), cls="part")
    titles = [f"attempt {a.number}: {_word(a)}" for a in pair]
    return tag("div", compare_html(pair[0].source, pair[1].source, *titles), cls="part")
