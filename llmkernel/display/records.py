"""Records for a notebook: a table of kernels, the versions of one, one with its report, and what differs between two."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llmkernel.display import figures, view
from llmkernel.display.bundle import report_bundle
from llmkernel.display.clean import one_line
from llmkernel.display.diff import diff_html, diff_summary, diff_text
from llmkernel.display.html_page import frame, table
from llmkernel.display.markup import Markup, join, tag
from llmkernel.display.source import highlight
from llmkernel.errors import RecordError
from llmkernel.evaluation.report import Report, Timing
from llmkernel.records.store import StoredRecord

Row = dict[str, str]
_MAX_DIFF = 60_000


def listing_bundle(
    records: Sequence[StoredRecord], directory: str, unreadable: Sequence[RecordError] = ()
) -> dict[str, Any]:
    """Return the MIME bundle of the kernels of a directory.

    Parameters
    ----------
    records : sequence of StoredRecord
    directory : str
    unreadable : sequence of RecordError
        Shown below the table, one line each.

    Returns
    -------
    dict
        ``text/html`` and ``text/plain``.
    """
    title = f"{figures.plural(len(records), 'kernel')} in {one_line(directory, 200)}"
    rows = [{"name": s.record.name, **_row(s)} for s in records]
    return _bundle(title, rows, [one_line(error.what, 300) for error in unreadable])


def history_bundle(name: str, versions: Sequence[StoredRecord]) -> dict[str, Any]:
    """Return the MIME bundle of the versions of one kernel, the one in place first."""
    rows = []
    for number, stored in enumerate(versions):
        label = f"{one_line(name, 80)}@{number}"
        rows.append({"version": label, **_row(stored), "folder": stored.version or "in place"})
    return _bundle(f"Versions of {one_line(name, 80)}, newest first", rows)


def record_bundle(stored: StoredRecord, label: str) -> dict[str, Any]:
    """Return the MIME bundle of one record: its report, and its source."""
    record, source = stored.record, stored.source
    if stored.is_edited or not record.report:
        what = "kernel.cu was edited since it was judged: there is no report of this source yet."
        title = f"Source of {one_line(label, 100)}"
        html = join([tag("p", what, cls="lead"), highlight(source)])
        return {
            "text/html": str(frame(tag("div", html, cls="in flat"), title)),
            "text/plain": f"{label}: {what}\n\n{source}",
        }
    bundle = report_bundle(
        record.read_report(),
        source=source,
        origin=f"recorded as {label}, {_date(stored)}",
        provider=record.provider,
        model="" if record.model == record.provider else record.model,
    )
    return {**bundle, "text/plain": f"{bundle['text/plain']}\n\nSource\n\n{source}"}


def diff_bundle(before: tuple[str, StoredRecord], after: tuple[str, StoredRecord]) -> dict[str, Any]:
    """Return the MIME bundle of what differs between two sources; each comes with what it is called."""
    (old_label, old), (new_label, new) = before, after
    title = f"{old_label} → {new_label}: {diff_summary(old.source, new.source)}"
    facts = [f"{label}: {_facts(stored)}" for label, stored in (before, after)]
    html = [tag("p", tag("strong", title)), *(tag("p", fact, cls="meta") for fact in facts)]
    changes: Markup = diff_html(old.source, new.source, limit=_MAX_DIFF)
    text = diff_text(old.source, new.source, limit=_MAX_DIFF) or "The source is unchanged."
    return {
        "text/html": str(frame(tag("div", *html, changes, cls="in flat"), title)),
        "text/plain": "\n".join([title, *(f"  {fact}" for fact in facts), "", text]),
    }


def speed_text(timing: Timing | None) -> str:
    """Return ``2.03 × torch.compile (max-autotune)``: the speed against the best baseline, as a table has it."""
    if timing is None:
        return "not timed"
    if timing.is_emulation:
        return "emulated: says nothing of a GPU"
    if timing.is_suspect:
        return "suspect"
    best = next((b for b in timing.baselines if b.label == timing.best_baseline), None)
    if best is None or best.ratio is None:
        return f"{figures.time(timing.kernel.median_ms)}, no baseline"
    return f"{figures.ratio(best.ratio)} {best.label}"


def _bundle(title: str, rows: Sequence[Row], problems: Sequence[str] = ()) -> dict[str, Any]:
    headers = list(rows[0]) if rows else []
    cells = [[row[h] for h in headers] for row in rows]
    html = tag(
        "div",
        tag("p", tag("strong", title)),
        table(headers, cells, label=title) if rows else None,
        tag("ul", *(tag("li", problem) for problem in problems), cls="notes") if problems else None,
        cls="in flat",
    )
    lines = [title, *_text_table(rows), *(f"! {problem}" for problem in problems)]
    return {"text/html": str(frame(join([html]), title)), "text/plain": "\n".join(lines)}


def _row(stored: StoredRecord) -> Row:
    record = stored.record
    row = {"signature": record.problem.signature, "outcome": _outcome(stored)}
    report = _report(stored)
    row["speed"] = speed_text(report.timing) if report is not None and not stored.is_edited else ""
    row["device"] = view.device_text(report) if report is not None else ""
    row["provider"] = " · ".join(dict.fromkeys(filter(None, (record.provider, record.model))))
    row["date (UTC)"] = _date(stored)
    return {name: one_line(cell, 120) for name, cell in row.items()}


def _outcome(stored: StoredRecord) -> str:
    unverified = "unverified, " if stored.record.is_unverified else ""
    report = _report(stored)
    if stored.is_edited or report is None:
        return f"{unverified}edited since"
    found = view.verdict(report)
    return f"{found.symbol} {found.word}"


def _report(stored: StoredRecord) -> Report | None:
    return stored.record.read_report() if stored.record.report else None


def _facts(stored: StoredRecord) -> str:
    row = _row(stored)
    return " · ".join(row[k] for k in ("outcome", "speed", "device", "provider", "date (UTC)") if row[k])


def _date(stored: StoredRecord) -> str:
    return stored.record.created[:16].replace("T", " ")


def _text_table(rows: Sequence[Row]) -> list[str]:
    # One block a record: seven columns do not fit into a terminal.
    lines = []
    for row in rows:
        first, *others = row
        width = max(map(len, others))
        lines += ["", row[first]]
        lines += [f"  {header:<{width}}  {row[header]}" for header in others if row[header]]
    return lines
