"""Reports and tables for a terminal."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from typing import Any

from llmkernel.display import timing_rows, view
from llmkernel.display.clean import NO_BREAK, cap, display_width, hold_together, one_line
from llmkernel.display.error_map import map_lines, map_sentence, read_error_map
from llmkernel.display.page import RECORD_FILE, Page, byline, provenance
from llmkernel.display.roofline import roofline_words
from llmkernel.evaluation.report import CheckResult, Report

_COLOURS = {"good": "32", "bad": "31", "unsure": "33", "quiet": "2"}
_BAR = 30
_SEGMENT = re.compile(r"[^/\\]*[/\\]+|[^/\\]+")


def format_report(report: Report, width: int = 80, is_colour: bool = False) -> str:  # noqa: FBT001, FBT002
    """Return a report for a terminal.

    Parameters
    ----------
    report : Report
    width : int
        Columns; at least 40 are used.
    is_colour : bool
        Colour verdicts and statuses; their words are there in any case.
    """
    return page_text(Page(report, origin=""), width, is_colour=is_colour)


def page_text(page: Page, width: int = 80, *, is_colour: bool = False) -> str:
    """Return everything that is known of one candidate, as text."""
    report, width = page.report, max(width, 40)
    verdict = view.verdict(report)
    title = paint(f"{verdict.symbol} {verdict.word}", verdict.kind, is_colour=is_colour)
    # The name may be long: what is coloured stays on the first line, whole.
    room = max(width - display_width(f"{verdict.symbol} {verdict.word} · "), 0)
    fits = display_width(page.name) <= room
    first = [f"{title} · {page.name}"] if fits else [title, *wrap(page.name, width, "  ")]
    blocks = [[*first, *wrap(one_line(report.headline, 800), width)]]
    if report.signature:
        blocks[0] += wrap(one_line(report.signature, 600), width, "  ")
    blocks[0] += wrap(byline(page), width, "  ")
    noted = [line for text in view.notices(report) for line in wrap(f"! {text}", width, hanging="  ")]
    blocks += [noted] if noted else []
    blocks += [
        part for part in (_fault(report, width), _diagnostics(page, width), _timing(report, width)) if part
    ]
    blocks.append(_checks(report, width, is_colour=is_colour))
    blocks.append(_not_checked(report, width))
    if report.workloads:
        blocks.append(["Workloads", *wrap(view.workloads_summary(report), width, "  ")])
    if report.tolerance:
        blocks.append(["Tolerance", *pairs(view.tolerance_items(report), width)])
    blocks += [part for part in (_compile(report, width),) if part]
    facts = [
        item for item in provenance(page) if item[0] in ("provider", "model", "tokens", "money", "wall time")
    ]
    if facts:
        blocks.append(["Provenance", *pairs(facts, width)])
    if page.edit_command:
        blocks.append(wrap(f"{page.edit_command} opens the source in a cell below.", width))
    return "\n\n".join("\n".join(block) for block in blocks)


def format_table(
    rows: Sequence[Sequence[Any]],
    headers: Sequence[str] = (),
    *,
    width: int = 80,
    align_right: Sequence[int] = (),
    indent: str = "",
) -> str:
    """Return rows as aligned columns; the widest column is wrapped until the table fits.

    Parameters
    ----------
    rows : sequence of sequences
        Cells are cleaned and put on one line.
    headers : sequence of str, optional
        Written over a rule.
    width : int
        Columns of the terminal.
    align_right : sequence of int
        Indices of numeric columns.
    indent : str
    """
    cells = [[one_line(cell, 2000) for cell in row] for row in rows]
    table = [[one_line(h, 200) for h in headers], *cells] if headers else cells
    count = max(map(len, table), default=0)
    if not count:
        return ""
    table = [[*row, *[""] * (count - len(row))] for row in table]
    widths = [max(display_width(row[i]) for row in table) for i in range(count)]
    room = max(width - len(indent) - 2 * (count - 1), 4 * count)
    while sum(widths) > room:
        widest = max(range(count), key=lambda i: widths[i])
        if widths[widest] <= 4:
            break
        widths[widest] -= 1
    right = set(align_right)
    lines = []
    for number, row in enumerate(table):
        wrapped = [_fold(cell, widths[i]) for i, cell in enumerate(row)]
        for level in range(max(map(len, wrapped))):
            parts = [
                _pad(c[level] if level < len(c) else "", widths[i], i in right) for i, c in enumerate(wrapped)
            ]
            lines.append((indent + "  ".join(parts)).rstrip())
        if headers and number == 0:
            lines.append(indent + "  ".join("─" * w for w in widths))
    return "\n".join(lines)


def paint(text: str, kind: str, *, is_colour: bool) -> str:
    """Return `text`, coloured for its kind where colours are wanted."""
    code = _COLOURS.get(kind)
    return f"\x1b[{code}m{text}\x1b[0m" if is_colour and code else text


def wrap(text: str, width: int, indent: str = "", *, hanging: str | None = None) -> list[str]:
    """Return `text` as lines of at most `width` columns."""
    follow = indent if hanging is None else hanging
    lines = textwrap.wrap(
        hold_together(text), width, initial_indent=indent, subsequent_indent=follow, break_on_hyphens=False
    )
    return [line.replace(NO_BREAK, " ") for line in lines]


def pairs(items: Sequence[tuple[str, str]], width: int) -> list[str]:
    """Return labels and texts as two columns."""
    return format_table([[label, text] for label, text in items], width=width, indent="  ").split("\n")


def _fold(cell: str, width: int) -> list[str]:
    """Return a cell as lines: broken between words, in a word that is too long behind its slashes, else anywhere."""
    width = max(width, 1)
    lines, line = [], ""
    held = hold_together(cell)
    if any(display_width(word) > width for word in held.split(" ") if NO_BREAK in word):
        held = cell
    for word in held.split(" "):
        space = " " if line else ""
        for piece in [word] if display_width(word) <= width else _SEGMENT.findall(word):
            if display_width(line + space + piece) <= width:
                line += space + piece
            else:
                lines += [line] if line else []
                *whole, line = textwrap.wrap(piece, width, break_on_hyphens=False) or [piece]
                lines += whole
            space = ""
    return [each.replace(NO_BREAK, " ") for each in (*lines, line)]


def _pad(text: str, width: int, is_right: bool) -> str:  # noqa: FBT001
    space = " " * max(width - display_width(text), 0)
    return space + text if is_right else text + space


def _fault(report: Report, width: int) -> list[str]:
    fault = report.fault
    if not fault:
        return []
    lines = [f"Fault: {one_line(str(fault.get('kind', 'fault')).replace('_', ' '), 60)}"]
    lines += wrap(one_line(fault.get("message") or "", 1000), width, "  ")
    items = [("kernel", one_line(fault["kernel"], 200))] if fault.get("kernel") else []
    extra = fault.get("details")
    items += view.evidence_items(extra) if isinstance(extra, dict) else []
    return lines + (pairs(items, width) if items else [])


def _diagnostics(page: Page, width: int) -> list[str]:
    found = view.diagnostics(page.report)
    if not found or page.report.outcome != "not_compiled":
        return []
    lines = ["What the compiler says"]
    for item in found[:8]:
        first, *excerpt = view.diagnostic_block(item, page.source).split("\n")
        lines += wrap(first, width, "  ", hanging="    ")
        lines += [line[:width] for line in excerpt]
    if len(found) > 8:
        lines.append(f"  {len(found) - 8} more in {RECORD_FILE}")
    return lines


def _timing(report: Report, width: int) -> list[str]:
    timing = report.timing
    if timing is None:
        return []
    rows = timing_rows.timing_rows(timing)[:24]
    table = [[row.label + (", best" if row.kind == "best" else ""), row.time, row.ratio] for row in rows]
    if not any(row.ratio for row in rows):
        table = [cells[:2] for cells in table]
    taken = sum(max(display_width(cells[i]) for cells in table) + 2 for i in range(len(table[0])))
    room = min(width - 2 - taken, _BAR)
    if room >= 8:
        full = max(row.median_ms for row in rows) or 1.0
        for row, cells in zip(rows, table, strict=True):
            length = max(1, round(room * min(row.median_ms / full, 1.0)))
            cells.append(("┄" if row.kind == "limit" else "█") * length)
    lines = [timing_rows.timing_title(timing), *wrap(timing_rows.timing_sentence(timing), width, "  ")]
    lines += format_table(table, width=width, align_right=(1,), indent="  ").split("\n")
    lines += wrap(timing_rows.timing_caption(timing), width, "  ")
    return lines + wrap(roofline_words(timing), width, "  ")


def _checks(report: Report, width: int, *, is_colour: bool) -> list[str]:
    checks = view.ordered_checks(report)
    if not checks:
        return ["What was checked", "  No check was run."]
    lines = wrap(f"What was checked ({view.checks_summary(checks)})", width, hanging="  ")
    name_width = min(max(display_width(one_line(c.name, 40)) for c in checks), 28)
    for place, check in enumerate(checks[: view.MAX_CHECKS]):
        symbol, word, kind = view.STATUSES[check.status]
        name = one_line(check.name, 40)
        start = f"  {symbol} {name}{' ' * max(name_width - display_width(name), 0)}  "
        shown = "" if check.status == "passed" else f"{word}: "
        body = wrap(start + shown + one_line(check.summary, 600), width, hanging=" " * (name_width + 6))
        # Wrapping may not eat the spaces of the first line, so it is coloured only afterwards.
        lines += [
            paint(body[0], kind, is_colour=is_colour) if check.status != "passed" else body[0],
            *body[1:],
        ]
        if view.shows_evidence(check, place):
            lines += [" " * 4 + line for line in pairs(view.evidence_items(check.evidence), width - 4)]
            lines += _map(check, width)
    if len(checks) > view.MAX_CHECKS:
        lines.append(f"  {len(checks) - view.MAX_CHECKS} more in {RECORD_FILE}")
    return lines


def _map(check: CheckResult, width: int) -> list[str]:
    """Return where a result is wrong as a picture of characters, where it fits."""
    picture = read_error_map(check.evidence)
    if picture is None:
        return []
    drawn = [f"{' ' * 6}{line}".rstrip() for line in map_lines(picture)]
    told = wrap(map_sentence(picture), width, " " * 6)
    return [*told, *drawn] if all(display_width(line) <= width for line in drawn) else told


def _not_checked(report: Report, width: int) -> list[str]:
    lines = ["What was not checked"]
    if not report.not_checked:
        return [*lines, *wrap("Nothing was named; a sample is still no proof.", width, "  ")]
    for text in report.not_checked[: view.MAX_SENTENCES]:
        lines += wrap(f"  - {one_line(text, 500)}", width, hanging="    ")
    if len(report.not_checked) > view.MAX_SENTENCES:
        lines.append(f"  {len(report.not_checked) - view.MAX_SENTENCES} more in {RECORD_FILE}")
    return lines


def _compile(report: Report, width: int) -> list[str]:
    if not report.compile:
        return []
    lines = ["Compile and resources"]
    sentence = view.compile_sentence(report)
    lines += wrap(sentence, width, "  ") if sentence else []
    rows = view.resource_rows(report)
    names = view.kernels_sentence(report)
    lines += wrap(names, width, "  ") if names else []
    if rows and not names:
        headers = ["kernel", "registers", "spills", "static shared", "occupancy"]
        lines += format_table(rows, headers, width=width, align_right=(1, 2, 3, 4), indent="  ").split("\n")
    log = report.compile.get("log")
    if log and report.outcome == "not_compiled" and not view.diagnostics(report):
        lines += ["  " + line for line in cap(log, 3000, RECORD_FILE).split("\n")]
    return lines if len(lines) > 1 else []
