"""One report in every form that a notebook can show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import llmkernel.display.forms  # noqa: F401 - whoever shows a report here may also print one
from llmkernel.display.html_page import report_html
from llmkernel.display.markdown import page_markdown
from llmkernel.display.page import Page
from llmkernel.display.text import page_text
from llmkernel.display.view import json_able
from llmkernel.evaluation.report import Report
from llmkernel.providers.base import Usage
from llmkernel.synthesis.events import Attempt

RECORD_MIME = "application/vnd.llmkernel.record+json"


def report_bundle(
    report: Report,
    *,
    source: str | None = None,
    attempts: Sequence[Attempt] = (),
    record: dict[str, Any] | None = None,
    origin: str = "generated",
    provider: str = "",
    model: str = "",
    usage: Usage | None = None,
    cost_usd: float | None = None,
) -> dict[str, Any]:
    """Return the MIME bundle of one report.

    Parameters
    ----------
    report : Report
    source : str, optional
        The candidate; None where there is none.
    attempts : sequence of Attempt
        All rounds, the last one last.
    record : dict, optional
        JSON data that goes into the output as it is.
    origin : str
        ``generated``, ``replayed`` or ``library``.
    provider, model : str
        Who wrote it; empty when nobody was asked.
    usage : Usage, optional
        Tokens of all attempts together.
    cost_usd : float, optional
        Only where a price is known.

    Returns
    -------
    dict
        ``text/html`` (at most about 300 kB, no script, nothing from outside), ``text/markdown``,
        ``text/plain`` (80 columns) and, with a record, ``application/vnd.llmkernel.record+json``.
    """
    page = Page(
        report, source, attempts, origin, provider, model, usage, cost_usd, has_record=record is not None
    )
    bundle: dict[str, Any] = {
        "text/html": str(report_html(page)),
        "text/markdown": page_markdown(page),
        "text/plain": page_text(page),
    }
    if record is not None:
        bundle[RECORD_MIME] = json_able(record)
    return bundle


def attempts_bundle(attempts: Sequence[Attempt], *, provider: str = "") -> dict[str, Any] | None:
    """Return the bundle of a synthesis that accepted nothing: the last report, all attempts beside it.

    None where no attempt came as far as a report.
    """
    judged = [a for a in attempts if a.report is not None]
    if not judged or judged[-1].report is None:
        return None
    replies = [a.reply for a in attempts if a.reply is not None]
    usage = sum((r.usage for r in replies), Usage())
    costs = [r.cost_usd for r in replies if r.cost_usd is not None]
    return report_bundle(
        judged[-1].report,
        source=judged[-1].source,
        attempts=attempts,
        # What nobody replied was written in the cell.
        origin="generated" if replies else "by hand",
        provider=provider,
        model=replies[-1].model if replies else "",
        usage=usage,
        cost_usd=sum(costs) if costs and len(costs) == len(replies) else None,
    )
