"""A report as GitHub-flavoured Markdown."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from llmkernel.display import timing_rows, view
from llmkernel.display.attempts import attempt_verdict
from llmkernel.display.clean import cap, one_line
from llmkernel.display.error_map import map_lines, map_sentence, read_error_map
from llmkernel.display.page import RECORD_FILE, SOURCE_FILE, Page, byline, key_figures, provenance
from llmkernel.display.roofline import roofline_words
from llmkernel.evaluation.report import CheckResult, Report

_SPECIAL = re.compile(r"([\\`*_\[\]|#~$!{}])")
MAX_SOURCE = 40_000


def escape_markdown(text: Any, limit: int = 800) -> str:
    """Return text that Markdown shows as it is: no markup, link, formula or HTML comes out of it."""
    value = one_line(text, limit).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    value = _SPECIAL.sub(r"\\\1", value)
    # A bare address would become a link, and @name would notify somebody.
    value = value.replace("://", ":&#8203;//").replace("@", "&#64;")
    return re.sub(r"^(\d+)([.)])(?=\s|$)", r"\1\\\2", re.sub(r"^([-+])", r"\\\1", value))


def code_span(text: Any, limit: int = 600) -> str:
    """Return a code span, also for text with backticks; safe in a table."""
    value = one_line(text, limit)
    if not value:
        return ""
    longest = max((len(run) for run in re.findall(r"`+", value)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if value.startswith("`") or value.endswith("`") else ""
    return f"{fence}{pad}{value.replace('|', chr(92) + '|')}{pad}{fence}"


def code_block(text: str, language: str = "") -> str:
    """Return a fenced block whose fence is longer than any inside."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def table(headers: Sequence[str], rows: Sequence[Sequence[str]], numeric: Sequence[int] = ()) -> str:
    """Return a table of cells that are Markdown already."""
    rule = ["---:" if i in numeric else "---" for i in range(len(headers))]
    return "\n".join("| " + " | ".join(row) + " |" for row in (headers, rule, *rows))


def page_markdown(page: Page) -> str:
    """Return the whole report."""
    report = page.report
    verdict = view.verdict(report)
    parts = [f"### {verdict.symbol} {escape_markdown(verdict.word)} · {escape_markdown(page.name)}"]
    parts.append(escape_markdown(report.headline))
    if report.signature:
        parts.append(code_span(report.signature))
    parts.append(escape_markdown(byline(page)))
    parts += [f"> **Note:** {escape_markdown(text)}" for text in view.notices(report)]
    found = [f"- **{label}:** {escape_markdown(text)}" for label, text in key_figures(page)]
    parts += ["\n".join(found)] if found else []
    parts += [*_fault(report), *_diagnostics(page), *_timing(report), *_checks(report), *_not_checked(report)]
    parts += _details(page)
    return "\n\n".join(part for part in parts if part) + "\n"


def _items(items: Sequence[tuple[str, str]]) -> str:
    return "\n".join(f"- {escape_markdown(label, 60)}: {escape_markdown(text)}" for label, text in items)


def _fault(report: Report) -> list[str]:
    fault = report.fault
    if not fault:
        return []
    kind = escape_markdown(str(fault.get("kind", "fault")).replace("_", " "), 60)
    items = [("kernel", one_line(fault["kernel"], 200))] if fault.get("kernel") else []
    extra = fault.get("details")
    items += view.evidence_items(extra) if isinstance(extra, dict) else []
    return [f"#### Fault: {kind}", escape_markdown(fault.get("message") or ""), _items(items)]


def _diagnostics(page: Page) -> list[str]:
    found = view.diagnostics(page.report)
    if not found or page.report.outcome != "not_compiled":
        return []
    lines = [view.diagnostic_block(item, page.source) for item in found[:12]]
    return ["#### What the compiler says", code_block("\n".join(lines), "text")]


def _timing(report: Report) -> list[str]:
    timing = report.timing
    if timing is None:
        return []
    rows = timing_rows.timing_rows(timing)[:24]
    has_ratio = any(row.ratio for row in rows)
    body = []
    for row in rows:
        label = escape_markdown(row.label, 80) + (f" – {escape_markdown(row.note)}" if row.note else "")
        label = f"**{label}**" if row.kind == "kernel" else label
        body.append([label, row.time, row.spread or "–", *([row.ratio or "–"] if has_ratio else [])])
    headers = ["What was timed", "Median", "20–80 %", *(["Ratio"] if has_ratio else [])]
    grid = table(headers, body, (1, 2, 3))
    return [
        f"#### {timing_rows.timing_title(timing)}",
        escape_markdown(timing_rows.timing_sentence(timing)),
        grid,
        escape_markdown(timing_rows.timing_caption(timing)),
        escape_markdown(roofline_words(timing)),
    ]


def _checks(report: Report) -> list[str]:
    checks = view.ordered_checks(report)
    if not checks:
        return ["#### What was checked", "No check was run."]
    rows = []
    for place, check in enumerate(checks[: view.MAX_CHECKS]):
        symbol, word, _ = view.STATUSES[check.status]
        covered = escape_markdown(check.summary, 600)
        if view.shows_evidence(check, place):
            covered += "".join(
                f"<br>{escape_markdown(k, 60)}: {code_span(v, 240)}"
                for k, v in view.evidence_items(check.evidence)
            )
        rows.append([escape_markdown(check.name, 80), f"{symbol} {word}", covered])
    more = f"{len(checks) - view.MAX_CHECKS} more in {RECORD_FILE}." if len(checks) > view.MAX_CHECKS else ""
    grid = table(["Check", "Result", "What was covered"], rows)
    return ["#### What was checked", grid, more, *_maps(checks)]


def _maps(checks: Sequence[CheckResult]) -> list[str]:
    """Return where results are wrong, as pictures of characters."""
    parts = []
    for place, check in enumerate(checks):
        picture = read_error_map(check.evidence) if view.shows_evidence(check, place) else None
        if picture is not None:
            parts.append(escape_markdown(map_sentence(picture)) + ".")
            parts.append(code_block("\n".join(map_lines(picture)), "text"))
    return parts


def _not_checked(report: Report) -> list[str]:
    title = "#### What was not checked"
    if not report.not_checked:
        return [title, "Nothing was named; a sample is still no proof."]
    lines = [f"- {escape_markdown(text, 500)}" for text in report.not_checked[: view.MAX_SENTENCES]]
    left = len(report.not_checked) - view.MAX_SENTENCES
    return [title, "\n".join([*lines, *([f"- {left} more in {RECORD_FILE}"] if left > 0 else [])])]


def _details(page: Page) -> list[str]:
    report = page.report
    parts = []
    if page.source is not None:
        parts += _folded("Source", code_block(cap(page.source, MAX_SOURCE, SOURCE_FILE).rstrip("\n"), "cuda"))
        if page.edit_command:
            parts.append(f"{code_span(page.edit_command)} opens the source in a cell below.")
    if report.workloads:
        rows, unit = [], view.error_unit(report)
        for item in view.ordered_workloads(report)[: view.MAX_WORKLOADS]:
            word = one_line(str(item.get("outcome", "–")).replace("_", " "), 40)
            cells = [view.in_unit(item.get(k), unit) for k in ("error", "allowed", "reference_error")]
            mark = "✓" if view.is_right(item) else "✗"
            name = escape_markdown(view.workload_name(item), 200)
            rows.append([name, f"{mark} {escape_markdown(word)}", *map(escape_markdown, cells)])
        error = f"Error ({unit[1]})" if unit[1] else "Error"
        headers = ["Workload", "Result", error, "Allowed", "Reference’s own"]
        parts += _folded("Workloads", table(headers, rows, (2, 3, 4)))
    if report.tolerance:
        parts += _folded("Tolerance", _items(view.tolerance_items(report)))
    resources, names = view.resource_rows(report), view.kernels_sentence(report)
    if names:
        parts += _folded("Compile and resources", escape_markdown(names))
    elif resources:
        headers = ["Kernel", "Registers", "Spills", "Static shared", "Occupancy"]
        body = [[code_span(r[0], 120), *map(escape_markdown, r[1:])] for r in resources]
        options = code_span(" ".join(map(str, report.compile.get("options") or ())), 1500)
        grid = table(headers, body, (1, 2, 3, 4)) + (f"\n\nOptions: {options}" if options else "")
        parts += _folded("Compile and resources", grid)
    if page.attempts:
        lines = [
            f"{attempt.number}. {attempt_verdict(attempt)}"
            + (f": {escape_markdown(attempt.report.headline, 400)}" if attempt.report else "")
            for attempt in page.attempts[:40]
        ]
        parts += _folded("Attempts", "\n".join(lines))
    return parts + _folded("Provenance and versions", _items(provenance(page)))


def _folded(title: str, content: str) -> list[str]:
    return [f"<details><summary>{title}</summary>", content, "</details>"]
