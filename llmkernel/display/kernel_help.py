"""What `?`, `??` and Shift-Tab say of a kernel: signature, how it was verified, timing, source."""

from __future__ import annotations

import inspect
from typing import Any

from llmkernel.display import timing_rows, view
from llmkernel.display.clean import cap, one_line
from llmkernel.display.text import format_report, format_table
from llmkernel.evaluation.report import Report

_WIDTH = 96
_SOURCE_LINES = 60
_INTENT_LINES = 12
_MAX_SOURCE = 60_000


def kernel_help(kernel: Any, detail_level: int = 0) -> list[tuple[str, str]]:
    """Return title and text of each section, the most asked for first.

    Parameters
    ----------
    kernel : GeneratedKernel or UnverifiedKernel
    detail_level : int
        0 for a tooltip; 1 adds the whole report, and shows a long source to its end.
    """
    report: Report = kernel.report
    sections = [
        ("Signature", f"{kernel.__name__}{inspect.signature(kernel)}"),
        ("Contract", one_line(kernel.signature, 600)),
        ("Verified" if report.is_verified else "Not verified", _verdict(report)),
        ("Timing", _timing(report)),
        ("Not checked", "\n".join(f"- {one_line(text, 300)}" for text in report.not_checked)),
        ("Written by", _writer(kernel)),
        ("Intent", _lines(_intent(kernel), _INTENT_LINES)),
    ]
    if detail_level:
        sections.append(("Report", format_report(report, _WIDTH)))
    hint = f"{kernel.__name__}?? shows all"
    source = cap(kernel.source, _MAX_SOURCE)
    sections.append(("Source", source if detail_level else _lines(source, _SOURCE_LINES, hint)))
    return [(title, text) for title, text in sections if text.strip()]


def _verdict(report: Report) -> str:
    verdict = view.verdict(report)
    lines = [
        f"{verdict.symbol} {verdict.word} on {view.device_text(report) or '?'} ({one_line(report.level, 40)})",
        one_line(report.headline, 600),
    ]
    if report.checks:
        passed = [one_line(c.name, 40) for c in report.checks if c.status == "passed"]
        lines.append(f"{view.checks_summary(report.checks)}: {', '.join(passed)}")
    return "\n".join([*lines, *view.notices(report)])


def _timing(report: Report) -> str:
    timing = report.timing
    if timing is None:
        return ""
    rows = [[row.label, row.time, row.ratio, row.note] for row in timing_rows.timing_rows(timing)[:12]]
    table = format_table(rows, width=_WIDTH, align_right=(1,))
    return f"{timing_rows.timing_sentence(timing)}\n{table}"


def _writer(kernel: Any) -> str:
    record = kernel.record
    if record is None:
        return ""
    who = " · ".join(dict.fromkeys(one_line(p, 80) for p in (record.provider, record.model) if p))
    when = one_line(record.created, 40)[:16].replace("T", " ")
    return f"{who or 'unknown'}, {when} UTC"


def _intent(kernel: Any) -> str:
    problem = getattr(kernel, "problem", None)
    return cap(problem.intent.strip(), 4000) if problem is not None else ""


def _lines(text: str, limit: int, hint: str = "") -> str:
    lines = text.rstrip("\n").split("\n")
    left = len(lines) - limit
    if left <= 0:
        return "\n".join(lines)
    return "\n".join([*lines[:limit], f"… {left} more lines" + (f"; {hint}" if hint else "")])
