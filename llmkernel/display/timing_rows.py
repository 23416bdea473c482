"""The rows of the timing table and the sentence that may be said of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from llmkernel.display import figures
from llmkernel.display.clean import one_line
from llmkernel.evaluation.report import Measurement, Timing


@dataclass(frozen=True)
class TimingRow:
    """One bar.

    Attributes
    ----------
    label : str
    kind : str
        ``kernel``, ``best`` (the fastest baseline), ``baseline`` or ``limit`` (the speed of light).
    median_ms, low_ms, high_ms : float
        `low_ms` and `high_ms` are the ends of the whisker: the 95 % interval of the paired ratio times the
        kernel's median for a baseline, the 20th and 80th percentile where there is no ratio.
    time, spread, ratio, note : str
        Ready to print.
    """

    label: str
    kind: str
    median_ms: float
    low_ms: float
    high_ms: float
    time: str
    spread: str
    ratio: str
    note: str


def timing_rows(timing: Timing) -> list[TimingRow]:
    """Return the kernel, the baselines from fast to slow, and the speed of light."""
    unit = figures.time_unit(timing.kernel.median_ms)
    rows = [_row(timing, timing.kernel, "kernel", unit)]
    for baseline in sorted(timing.baselines, key=lambda b: b.median_ms):
        is_best = baseline.label == timing.best_baseline and not timing.is_emulation
        kind = "best" if is_best else "baseline"
        rows.append(_row(timing, baseline, kind, unit))
    if timing.speed_of_light_ms is not None and not timing.is_emulation:
        limit = timing.speed_of_light_ms
        fraction = timing.fraction_of_speed_of_light
        reached = "" if fraction is None else f"{100 * fraction:.0f} % reached"
        parts = [figures.size(timing.bytes_moved) + " to move"] if timing.bytes_moved is not None else []
        if timing.operations:
            parts.append(figures.count_of(timing.operations, "operations"))
        note = ", ".join(parts)
        rows.append(
            TimingRow(
                "speed of light", "limit", limit, limit, limit, figures.time(limit, unit), "", reached, note
            )
        )
    return rows


def sample_rows(rows: Sequence[Measurement]) -> list[TimingRow]:
    """Return the rows of a timing that still runs, this kernel first; none has a ratio."""
    unit = figures.time_unit(rows[0].median_ms) if rows else figures.time_unit(1.0)
    return [_plain_row(row, "baseline" if i else "kernel", unit) for i, row in enumerate(rows)]


def _plain_row(row: Measurement, kind: str, unit: figures.Unit) -> TimingRow:
    spread = figures.interval(row.p20_ms * unit[1], row.p80_ms * unit[1])
    label, time = one_line(row.label, 80), figures.time(row.median_ms, unit)
    return TimingRow(label, kind, row.median_ms, row.p20_ms, row.p80_ms, time, spread, "", "")


def _row(timing: Timing, row: Measurement, kind: str, unit: figures.Unit) -> TimingRow:
    low, high, ratio = row.p20_ms, row.p80_ms, ""
    # A ratio is a claim: emulation and suspect timings make none.
    has_ratio = row.ratio is not None and not timing.is_emulation and not timing.is_suspect
    if has_ratio:
        ratio = figures.ratio(row.ratio)
        interval = figures.interval(row.ratio_low, row.ratio_high)
        ratio += f" ({interval})" if interval else ""
        if row.ratio_low is not None and row.ratio_high is not None:
            low, high = row.ratio_low * timing.kernel.median_ms, row.ratio_high * timing.kernel.median_ms
    _, factor = unit
    spread = figures.interval(row.p20_ms * factor, row.p80_ms * factor)
    note = one_line(row.note, 200)
    if kind == "best":
        note = "best baseline" + (f"; {note}" if note else "")
    return TimingRow(
        one_line(row.label, 80),
        kind,
        row.median_ms,
        low,
        high,
        figures.time(row.median_ms, unit),
        spread,
        ratio,
        note,
    )


def timing_sentence(timing: Timing) -> str:
    """Return the one sentence that may be said."""
    if timing.is_emulation:
        return "Emulation: measured on the cpu device, which says nothing about speed on a GPU"
    if timing.is_suspect:
        reached = timing.fraction_of_speed_of_light
        figure = "" if reached is None else f" ({100 * reached:.0f} % of it)"
        return f"Suspect: faster than the measured speed of light allows{figure}; not counted as a win"
    return one_line(timing.claim, 400) or f"{figures.time(timing.kernel.median_ms)} median"


def timing_caption(timing: Timing, *, has_whiskers: bool = False) -> str:
    """Return what was measured and how to read the rows."""
    parts = [one_line(timing.workload, 160)] if timing.workload else []
    parts.append(figures.plural(timing.kernel.samples, "sample"))
    is_claim = not timing.is_emulation and not timing.is_suspect
    if is_claim and any(row.ratio is not None for row in timing.baselines):
        parts.append("ratio: that row’s time over this kernel’s, with its 95 % interval")
    if has_whiskers:
        parts.append("whiskers: that interval" if is_claim else "whiskers: 20th to 80th percentile")
    return "; ".join(parts)


def timing_title(timing: Timing) -> str:
    """Return the heading: emulation and suspect timings carry their word in it."""
    return (
        "Timing (emulation)" if timing.is_emulation else "Timing (suspect)" if timing.is_suspect else "Timing"
    )
