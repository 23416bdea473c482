"""The ledger of a session as a table."""

from __future__ import annotations

from typing import Any

from llmkernel.display import figures
from llmkernel.display.clean import one_line
from llmkernel.display.html_page import frame, table
from llmkernel.display.markdown import escape_markdown
from llmkernel.display.markdown import table as markdown_table
from llmkernel.display.markup import join, tag
from llmkernel.providers.usage import UsageEntry, UsageLedger

_HEADERS = ["cell", "for", "model", "requests", "tokens in", "cached", "tokens out", "money"]
_NUMERIC = frozenset(range(3, len(_HEADERS)))


def usage_bundle(ledger: UsageLedger, budget_usd: float | None = None) -> dict[str, Any]:
    """Return the MIME bundle of a session's usage.

    Parameters
    ----------
    ledger : UsageLedger
    budget_usd : float, optional
        The notebook's budget.

    Returns
    -------
    dict
        ``text/html``, ``text/markdown`` and ``text/plain``.
    """
    rows = [_row(entry, count) for entry, count in ledger.by_cell()]
    total = ledger.total()
    if total is not None:
        rows.append(["all", "", "", *_row(total, len(ledger.entries))[3:]])
    title = "Asked of providers in this session" if rows else "Nothing was asked of a provider yet."
    notes = _notes(ledger, budget_usd)
    html = tag(
        "div",
        tag("p", tag("strong", title)),
        table(_HEADERS, rows, _NUMERIC, title) if rows else None,
        tag("ul", *(tag("li", note) for note in notes), cls="notes") if notes else None,
        cls="in flat",
    )
    cells = [[escape_markdown(cell) for cell in row] for row in rows]
    markdown = [title, markdown_table(_HEADERS, cells, tuple(_NUMERIC)) if rows else "", *notes]
    return {
        "text/html": str(frame(join([html]), title)),
        "text/markdown": "\n\n".join(part for part in markdown if part) + "\n",
        "text/plain": "\n".join([title, *_text(rows), *notes]),
    }


def _row(entry: UsageEntry, count: int) -> list[str]:
    model = " · ".join(dict.fromkeys(filter(None, (entry.provider, entry.model))))
    usage, grouped = entry.usage, figures.grouped
    return [
        entry.cell or "–",
        one_line(entry.purpose, 60),
        one_line(model, 80),
        str(count),
        grouped(usage.input_tokens),
        grouped(usage.cached_tokens),
        grouped(usage.output_tokens),
        figures.money(entry.cost_usd) or "not known",
    ]


def _notes(ledger: UsageLedger, budget_usd: float | None) -> list[str]:
    notes = []
    broken = sum(not e.is_whole for e in ledger.entries)
    unknown = sum(e.cost_usd is None and e.is_whole for e in ledger.entries)
    if broken:
        taken = "what it took" if broken == 1 else "what they took"
        notes.append(f"{figures.plural(broken, 'answer')} broke off; {taken} only the provider knows.")
    if unknown:
        notes.append(f"{figures.plural(unknown, 'request')} without a known price: models.toml can name one.")
    if (broken or unknown) and ledger.spent_usd:
        notes.append(f"Known so far: {figures.money(ledger.spent_usd)}.")
    if budget_usd is not None:
        notes.append(f"Budget: {figures.money(ledger.spent_usd)} of {figures.money(budget_usd)}.")
    return notes


def _text(rows: list[list[str]]) -> list[str]:
    if not rows:
        return []
    lines = [_HEADERS, *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(_HEADERS))]
    return [
        "  ".join(
            cell.rjust(width) if i in _NUMERIC else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]
