"""The timing table with its bars, in plain HTML."""

from __future__ import annotations

from collections.abc import Sequence

from llmkernel.display import figures, timing_rows
from llmkernel.display.markup import Markup, join, tag
from llmkernel.display.roofline import roofline_figure
from llmkernel.evaluation.report import Measurement, Timing

MAX_ROWS = 24


def timing_section(timing: Timing) -> Markup:
    """Return claim, bars and figures; emulation and suspect timings carry their word in the heading."""
    word = timing_rows.timing_title(timing)
    return join(
        [
            tag("h4", word, cls="jp-toc-ignore"),
            tag("p", timing_rows.timing_sentence(timing), cls="claim"),
            _bars(timing_rows.timing_rows(timing), word),
            tag("p", timing_rows.timing_caption(timing, has_whiskers=True), cls="meta"),
            roofline_figure(timing),
        ]
    )


def samples_table(rows: Sequence[Measurement]) -> Markup:
    """Return the bars of a timing that still runs; it makes no claim."""
    word = "Timing, so far"
    count = figures.plural(sum(row.samples for row in rows), "sample")
    caption = f"{count}; whiskers: 20th to 80th percentile; nothing is claimed before all are checked again"
    return join(
        [
            tag("h4", word, cls="jp-toc-ignore"),
            _bars(timing_rows.sample_rows(rows), word),
            tag("p", caption, cls="meta"),
        ]
    )


def _bars(rows: Sequence[timing_rows.TimingRow], word: str) -> Markup:
    shown = rows[:MAX_ROWS]
    full = max((max(r.median_ms, r.high_ms) for r in shown), default=0.0) or 1.0
    has_ratio = any(r.ratio for r in shown)
    headers = ["What was timed", "Median", "20–80 %", *(["Ratio"] if has_ratio else [])]
    classes = [None, "num", "num opt", "num"]
    head = [tag("th", text, scope="col", cls=cls) for text, cls in zip(headers, classes, strict=False)]
    body = [_row(row, full, has_ratio=has_ratio) for row in shown]
    grid = tag("table", tag("thead", tag("tr", *head)), tag("tbody", *body), cls="tm", aria_label=word)
    return tag("div", grid, cls="wrap", tabindex="0")


def _row(row: timing_rows.TimingRow, full: float, *, has_ratio: bool) -> Markup:
    note = tag("span", f" – {row.note}", cls="mut") if row.note else None
    ratio = tag("td", row.ratio or "–", cls="num ratio") if has_ratio else None
    return tag(
        "tr",
        tag("th", row.label, note, _bar(row, full), scope="row"),
        tag("td", row.time, cls="num"),
        tag("td", row.spread or "–", cls="num opt"),
        ratio,
        cls=row.kind,
    )


def _bar(row: timing_rows.TimingRow, full: float) -> Markup:
    """Return a bar whose length is the median; the figures stand in the cells beside it."""
    fill = tag("div", cls="fill", style=f"width:{_percent(row.median_ms, full)}%")
    whisker = None
    if row.high_ms > row.low_ms:
        left = _percent(row.low_ms, full)
        width = max(_percent(row.high_ms, full) - left, 0.0)
        whisker = tag("div", cls="wsk", style=f"left:{left}%;width:{width:.2f}%")
    label = ", ".join(p for p in (f"{row.label}: {row.time}", row.ratio) if p)
    return tag("div", fill, whisker, cls="bar", role="img", aria_label=label)


def _percent(value: float, full: float) -> float:
    share = 100 * value / full
    return round(min(max(share, 0.0), 100.0), 2) if share == share else 0.0
