"""The live state as HTML and text."""

from __future__ import annotations

from llmkernel.display import figures, view
from llmkernel.display.clean import hold_together, one_line
from llmkernel.display.html_page import frame, heading
from llmkernel.display.html_timing import samples_table
from llmkernel.display.live_state import FINISHED, LiveState, Stage, attempt_line
from llmkernel.display.markup import Markup, escape, join, tag
from llmkernel.display.source import highlight_lines


def live_bundle(state: LiveState, now: float) -> dict[str, str]:
    """Return what is shown of `state` at the time `now`."""
    return {"text/html": str(live_html(state, now)), "text/plain": live_text(state, now)}


def _title(state: LiveState, now: float) -> tuple[str, str, str, str]:
    """Return symbol, word, kind and the line below."""
    elapsed = figures.seconds(max(now - state.started, 0.0))
    round_ = f"attempt {state.attempt} of {state.attempts}" if state.attempt else ""
    meta = " · ".join(p for p in (round_, state.provider, elapsed) if p)
    if state.closing:
        last = state.finished[-1].report if state.finished else None
        if state.closing == FINISHED and last is not None:
            verdict = view.verdict(last)
            return verdict.symbol, verdict.word, verdict.kind, meta
        return "■", state.closing, "unsure", meta
    return "…", "stopping" if state.is_stopping else "working", "quiet", meta


def _waiting(state: LiveState, now: float) -> str:
    if state.waiting_until is None or state.closing:
        return ""
    left = max(state.waiting_until - now, 0.0)
    return f"waiting {left:.0f} s: {state.waiting_reason}"


def _checks_line(state: LiveState) -> list[str]:
    return [f"{view.STATUSES[c.status][0]} {one_line(c.name, 60)}" for c in state.checks[-60:]]


def live_text(state: LiveState, now: float) -> str:
    """Return the state as a few lines."""
    symbol, word, _, meta = _title(state, now)
    lines = [f"{symbol} {word} · {state.name}", f"  {meta}"]
    lines += [f"  {attempt_line(a)}" for a in state.finished[-8:]]
    lines += [f"  {_mark(state, s)} {_stage_text(s, now)}" for s in state.stages]
    waiting = _waiting(state, now)
    return "\n".join([*lines, *([f"  {waiting}"] if waiting else [])])


def live_html(state: LiveState, now: float) -> Markup:
    """Return the state as a region in the same frame as a report."""
    return frame(live_content(state, now), live_label(state))


def live_label(state: LiveState) -> str:
    """Return the region's name."""
    return f"{state.name}: {_title(state, state.started)[1]}"


def live_content(state: LiveState, now: float) -> Markup:
    """Return what stands inside the region."""
    symbol, word, kind, meta = _title(state, now)
    verdict = tag("span", tag("span", symbol, aria_hidden="true"), " ", tag("strong", word), cls="v")
    title = tag("h3", verdict, " · ", state.name, cls="jp-toc-ignore")
    head = tag("div", title, tag("p", hold_together(meta), cls="meta"), cls=f"head {kind}")
    waiting = _waiting(state, now)
    parts = [
        tag("ul", *(tag("li", attempt_line(a)) for a in state.finished[-8:]), cls="done")
        if state.finished
        else None,
        _stages(state, now),
        tag("p", tag("strong", waiting)) if waiting else None,
        _checks(state),
        samples_table(state.samples) if state.samples and not state.closing else None,
        None if state.closing else _reply(state),
    ]
    body = tag("div", *parts, cls="in") if any(parts) else None
    return join([head, body])


def _mark(state: LiveState, stage: Stage) -> str:
    if stage.ended is None:
        return "■" if state.closing else "▸"
    return "✓"


def _stage_text(stage: Stage, now: float) -> str:
    detail = f" – {stage.detail}" if stage.detail else ""
    return f"{stage.name}{detail} · {figures.seconds(stage.seconds(now))}"


def _stages(state: LiveState, now: float) -> Markup | None:
    if not state.stages:
        return None
    items = []
    for stage in state.stages:
        mark = tag("span", _mark(state, stage), cls="good" if stage.ended is not None else "quiet")
        name = stage.name if stage.ended is not None or state.closing else tag("strong", stage.name)
        detail = f" – {stage.detail}" if stage.detail else ""
        time = figures.seconds(stage.seconds(now))
        items.append(tag("li", mark, " ", name, tag("span", hold_together(f"{detail} · {time}"), cls="mut")))
    return tag("ol", *items, cls="steps")


def _checks(state: LiveState) -> Markup | None:
    if not state.checks:
        return None
    items = []
    for check in state.checks[-60:]:
        symbol, word, kind = view.STATUSES[check.status]
        shown = None if check.status == "passed" else tag("span", f" {word}", cls="v")
        items.append(tag("li", tag("span", symbol, cls="v"), " ", one_line(check.name, 60), shown, cls=kind))
    return join([heading("Checks"), tag("ul", *items, cls="chips")])


def _reply(state: LiveState) -> Markup | None:
    running = state.stages[-1].name if state.stages and state.stages[-1].ended is None else ""
    if running == "thinking":
        text = " ".join(state.thinking.split())[-300:]
        return tag("p", f"thinking… {text}" if text else "thinking…", cls="mut")
    if running != "reply":
        return None
    lines: list[Markup] = []
    for text, is_code in state.tail.segments():
        lines += highlight_lines(text) if is_code else [escape(line) for line in text.split("\n")]
    count = f"{figures.grouped(state.tail.characters)} characters so far"
    return join([tag("pre", tag("code", join(lines, "\n")), cls="src tail"), tag("p", count, cls="meta")])
