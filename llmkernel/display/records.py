"""Records as a table, for a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llmkernel.display import figures, view
from llmkernel.display.clean import one_line
from llmkernel.display.html_page import frame, table
from llmkernel.display.markup import join, tag
from llmkernel.errors import RecordError
from llmkernel.records.store import StoredRecord

_HEADERS = ["name", "verdict", "signature", "verified on", "written by", "created (UTC)", "version"]


def records_bundle(
    title: str, records: Sequence[StoredRecord], unreadable: Sequence[RecordError] = ()
) -> dict[str, Any]:
    """Return the MIME bundle of a list of records.

    Parameters
    ----------
    title : str
    records : sequence of StoredRecord
    unreadable : sequence of RecordError
        Shown below the table, one line each.

    Returns
    -------
    dict
        ``text/html`` and ``text/plain``.
    """
    rows = [_row(stored) for stored in records]
    problems = [one_line(error.what, 300) for error in unreadable]
    lines = [title, *_text_table(rows), *(f"! {problem}" for problem in problems)]
    html = tag(
        "div",
        tag("p", tag("strong", title)),
        table(_HEADERS, rows, label=title) if rows else None,
        tag("ul", *(tag("li", problem) for problem in problems), cls="notes") if problems else None,
        cls="in flat",
    )
    return {"text/html": str(frame(join([html]), title)), "text/plain": "\n".join(lines)}


def listing_title(count: int, directory: str) -> str:
    """Return ``2 kernels in kernels``."""
    return f"{figures.plural(count, 'kernel')} in {one_line(directory, 200)}"


def _row(stored: StoredRecord) -> list[str]:
    record = stored.record
    verdict, device = "edited since", ""
    if record.report:
        report = record.read_report()
        device = view.device_text(report)
        if not stored.is_edited:
            found = view.verdict(report)
            verdict = f"{found.symbol} {found.word}"
    author = " · ".join(dict.fromkeys(filter(None, (record.provider, record.model))))
    created = record.created[:16].replace("T", " ")
    cells = [
        record.name,
        verdict,
        record.problem.signature,
        device,
        author,
        created,
        stored.version or "in place",
    ]
    return [one_line(cell, 120) for cell in cells]


def _text_table(rows: list[list[str]]) -> list[str]:
    # One block a record: seven columns do not fit into a terminal.
    width = max(map(len, _HEADERS))
    lines = []
    for name, *cells in rows:
        lines += ["", name]
        lines += [
            f"  {header:<{width}}  {cell}" for header, cell in zip(_HEADERS[1:], cells, strict=True) if cell
        ]
    return lines
