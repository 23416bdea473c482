"""A generated kernel as the last value of a cell."""

from __future__ import annotations

from llmkernel.display import timing_rows, view
from llmkernel.display.clean import one_line
from llmkernel.display.html_page import details, frame, source_summary
from llmkernel.display.markup import join, tag
from llmkernel.display.page import SOURCE_FILE, Page, byline
from llmkernel.display.source import highlight
from llmkernel.evaluation.report import Report


def repr_html_for_kernel(
    *, name: str, signature: str, report: Report, source: str, origin: str = "generated", provider: str = ""
) -> str:
    """Return a compact representation: verdict, signature, what may be said of its speed, source folded.

    Parameters
    ----------
    name, signature : str
    report : Report
        Of the accepted candidate.
    source : str
    origin : str
        ``generated``, ``replayed``, ``by hand`` or ``library``.
    provider : str
    """
    page = Page(report, source, origin=origin, provider=provider)
    verdict = view.verdict(report)
    symbol = tag("span", verdict.symbol, aria_hidden="true")
    mark = tag("span", symbol, " ", tag("strong", verdict.word), cls="v")
    timing = tag("p", timing_rows.timing_sentence(report.timing), cls="lead") if report.timing else None
    notes = [tag("p", tag("strong", "Note: "), text, cls="lead") for text in view.notices(report)]
    head = tag(
        "div",
        tag("p", mark, " · ", tag("strong", one_line(name, 80))),
        tag("p", tag("code", one_line(signature, 600)), cls="meta"),
        timing,
        *notes,
        tag("p", byline(page), cls="meta"),
        cls=f"head {verdict.kind}",
    )
    folded = details("Source", highlight(source, where=SOURCE_FILE), summary=source_summary(page))
    return str(
        frame(join([head, tag("div", folded, cls="in flat")]), f"{one_line(name, 80)}: {verdict.word}")
    )


def repr_text_for_kernel(*, name: str, signature: str, report: Report) -> str:
    """Return the same as a line or two of text."""
    verdict = view.verdict(report)
    lines = [f"<{one_line(name, 80)}: {verdict.symbol} {verdict.word}; {one_line(signature, 400)}>"]
    if report.timing is not None:
        lines.append(f"  {timing_rows.timing_sentence(report.timing)}")
    return "\n".join(lines)
