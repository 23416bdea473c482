"""A report as HTML: inline style, no script, nothing from outside.

Where a host drops the style sheet (GitHub, an untrusted notebook) headings, tables, lists and ``<details>``
remain, and every bar has its figures beside it.
"""

from __future__ import annotations

from typing import Any

from llmkernel.display import figures, view
from llmkernel.display.attempts import attempts_section
from llmkernel.display.clean import cap, hold_together, one_line
from llmkernel.display.error_map import map_figure
from llmkernel.display.html_timing import timing_section
from llmkernel.display.markup import Markup, join, prose, tag
from llmkernel.display.page import RECORD_FILE, SOURCE_FILE, Page, byline, key_figures, provenance
from llmkernel.display.source import highlight
from llmkernel.display.style import root_class, style_sheet
from llmkernel.evaluation.report import CheckResult

MAX_HTML = 300_000


def report_html(page: Page) -> Markup:
    """Return the whole report, at most about 300 kB."""
    verdict = view.verdict(page.report)
    essential = [head(page), notes(page), figures_list(page)]
    essential += [
        fault_section(page),
        diagnostics_section(page),
        None if page.report.timing is None else timing_section(page.report.timing),
        checks_section(page),
        not_checked_section(page),
    ]
    room = MAX_HTML - len(style_sheet()) - sum(len(p) for p in essential if p)
    optional: list[Markup | None] = []
    for build in (
        source_section,
        workloads_section,
        tolerance_section,
        compile_section,
        provenance_section,
        attempts,
    ):
        part = build(page)
        if part is not None and len(part) > room:
            title = build.__name__.removesuffix("_section")
            part = tag("p", f"The part “{title}” is left out for its size; it is in the record.", cls="mut")
        room -= len(part or "")
        optional.append(part)
    body = tag("div", *essential[1:], *optional, cls="in")
    label = f"Report of {page.name}: {verdict.word}"
    return frame(join([essential[0], body]), label)


def frame(content: Markup, label: str) -> Markup:
    """Return `content` as a region with the style sheet; mathematics is never set in it."""
    classes = f"{root_class()} mathjax_ignore tex2jax_ignore"
    sheet = Markup(f"<style>{style_sheet()}</style>")
    return tag("div", sheet, content, cls=classes, role="region", aria_label=label)


def heading(text: str) -> Markup:
    """Return a section's heading, kept out of a notebook's table of contents."""
    return tag("h4", text, cls="jp-toc-ignore")


def head(page: Page) -> Markup:
    """Return the verdict: symbol, word, name and one sentence."""
    verdict = view.verdict(page.report)
    title = tag(
        "h3",
        tag(
            "span", tag("span", verdict.symbol, aria_hidden="true"), " ", tag("strong", verdict.word), cls="v"
        ),
        " · ",
        page.name,
        cls="jp-toc-ignore",
    )
    signature = one_line(page.report.signature, 600)
    return tag(
        "div",
        title,
        tag("p", prose(one_line(page.report.headline, 800)), cls="lead"),
        tag("p", tag("code", signature), cls="meta") if signature else None,
        tag("p", hold_together(byline(page)), cls="meta"),
        cls=f"head {verdict.kind}",
    )


def notes(page: Page) -> Markup | None:
    """Return what must be read first."""
    found = view.notices(page.report)
    if not found:
        return None
    items = [tag("li", tag("strong", "Note: "), prose(text)) for text in found]
    return tag("ul", *items, cls="notes")


def figures_list(page: Page) -> Markup | None:
    """Return the key figures."""
    found = key_figures(page)
    return (
        tag("dl", *(tag("div", tag("dt", a), tag("dd", hold_together(b))) for a, b in found), cls="figs")
        if found
        else None
    )


def facts(items: list[tuple[str, str]], cls: str = "kv") -> Markup:
    """Return labels and texts as a description list."""
    return tag("dl", *(join([tag("dt", a), tag("dd", hold_together(b))]) for a, b in items), cls=cls)


def table(
    headers: list[str], rows: list[list[Any]], numeric: frozenset[int] = frozenset(), label: str = ""
) -> Markup:
    """Return a table whose first column heads its rows."""
    top = [tag("th", h, scope="col", cls="num" if i in numeric else None) for i, h in enumerate(headers)]
    body = []
    for row in rows:
        cells = [tag("th", row[0], scope="row")]
        cells += [tag("td", c, cls="num" if i in numeric else None) for i, c in enumerate(row[1:], 1)]
        body.append(tag("tr", *cells))
    inner = tag("table", tag("thead", tag("tr", *top)), tag("tbody", *body), aria_label=label)
    return tag("div", inner, cls="wrap", tabindex="0")


def details(title: str, *content: Markup | None, summary: str = "", is_open: bool = False) -> Markup:
    """Return a part that opens; without a style sheet it still does."""
    extra = tag("span", hold_together(f" – {summary}"), cls="mut") if summary else None
    return tag("details", tag("summary", title, extra), *content, open=is_open)


def fault_section(page: Page) -> Markup | None:
    """Return how a run ended badly."""
    fault = page.report.fault
    if not fault:
        return None
    kind = one_line(str(fault.get("kind", "fault")).replace("_", " "), 60)
    where = one_line(fault.get("kernel") or "", 200)
    items = [("kernel", where)] if where else []
    extra = fault.get("details")
    items += view.evidence_items(extra) if isinstance(extra, dict) else []
    return join(
        [
            heading(f"Fault: {kind}"),
            tag("p", prose(one_line(fault.get("message") or "", 1000))),
            facts(items, "ev") if items else None,
        ]
    )


def diagnostics_section(page: Page) -> Markup | None:
    """Return the compiler's messages, each with its line of the source."""
    found = view.diagnostics(page.report)
    if not found or page.report.outcome != "not_compiled":
        return None
    shown = found[:8]
    parts: list[Markup | None] = [heading("What the compiler says")]
    parts += [tag("pre", view.diagnostic_block(item, page.source), tabindex="0") for item in shown]
    if len(found) > len(shown):
        parts.append(tag("p", f"{len(found) - len(shown)} more in {RECORD_FILE}.", cls="mut"))
    return join(parts)


def checks_section(page: Page) -> Markup | None:
    """Return what was checked: failed first, with evidence."""
    checks = view.ordered_checks(page.report)
    if not checks:
        return join([heading("What was checked"), tag("p", "No check was run.")])
    head_row = tag("tr", *(tag("th", h, scope="col") for h in ("Check", "Result", "What was covered")))
    rows = [
        check_row(check, has_evidence=view.shows_evidence(check, i))
        for i, check in enumerate(checks[: view.MAX_CHECKS])
    ]
    body = tag("table", tag("thead", head_row), tag("tbody", *rows), aria_label="What was checked")
    left = len(checks) - view.MAX_CHECKS
    more = tag("p", f"{left} more in {RECORD_FILE}.", cls="mut") if left > 0 else None
    return join([heading("What was checked"), tag("div", body, cls="wrap", tabindex="0"), more])


def check_row(check: CheckResult, *, has_evidence: bool) -> Markup:
    """Return one check, its evidence in a row of its own."""
    symbol, word, kind = view.STATUSES[check.status]
    row = tag(
        "tr",
        tag("th", one_line(check.name, 80), scope="row"),
        tag("td", tag("b", symbol, aria_hidden="true"), " ", word, cls=f"st {kind}"),
        tag("td", prose(one_line(check.summary, 400))),
    )
    if not has_evidence:
        return row
    evidence = facts(view.evidence_items(check.evidence), "ev")
    picture = map_figure(check.evidence)
    return join([row, tag("tr", tag("td", evidence, picture, colspan=3), cls="more")])


def not_checked_section(page: Page) -> Markup:
    """Return the negative space; it is always there and never folded away."""
    found = page.report.not_checked
    title = heading("What was not checked")
    if not found:
        return join([title, tag("p", "Nothing was named; a sample is still no proof.", cls="mut")])
    items = [tag("li", prose(one_line(text, 400))) for text in found[: view.MAX_SENTENCES]]
    if len(found) > view.MAX_SENTENCES:
        items.append(tag("li", f"{len(found) - view.MAX_SENTENCES} more in {RECORD_FILE}"))
    return join([title, tag("ul", *items, cls="plain")])


def workloads_section(page: Page) -> Markup | None:
    """Return the draws as a table."""
    found = view.ordered_workloads(page.report)
    if not found:
        return None
    rows, unit = [], view.error_unit(page.report)
    for item in found[: view.MAX_WORKLOADS]:
        word = one_line(str(item.get("outcome", "–")).replace("_", " "), 40)
        symbol = "✓" if view.is_right(item) else "✗"
        cells = [item.get("error"), item.get("allowed"), item.get("reference_error")]
        rows.append([view.workload_name(item), f"{symbol} {word}", *(view.in_unit(c, unit) for c in cells)])
    error = f"Error ({unit[1]})" if unit[1] else "Error"
    headers = ["Workload", "Result", error, "Allowed", "Reference’s own"]
    left = len(found) - view.MAX_WORKLOADS
    more = tag("p", f"{left} more in {RECORD_FILE}.", cls="mut") if left > 0 else None
    return details(
        "Workloads",
        table(headers, rows, frozenset({2, 3, 4}), "Workloads"),
        more,
        summary=figures.plural(len(found), "draw"),
    )


def tolerance_section(page: Page) -> Markup | None:
    """Return the tolerance with its reason."""
    items = view.tolerance_items(page.report)
    if not items:
        return None
    policy = one_line(page.report.tolerance.get("policy", "") or "", 80)
    return details("Tolerance", facts(items), summary=policy)


def compile_section(page: Page) -> Markup | None:
    """Return compile time, resources, warnings and the effective options."""
    report = page.report
    if not report.compile:
        return None
    rows = [[tag("code", r[0]), *r[1:]] for r in view.resource_rows(report)]
    headers = ["Kernel", "Registers", "Spills", "Static shared", "Occupancy"]
    names = view.kernels_sentence(report)
    grid = (
        table(headers, rows, frozenset({1, 2, 3, 4}), "Resources of each kernel")
        if rows and not names
        else None
    )
    listed = tag("p", names) if names else None
    options = report.compile.get("options") or ()
    flags = (
        tag("p", "Options: ", tag("code", one_line(" ".join(map(str, options)), 2000))) if options else None
    )
    messages = None
    found = view.diagnostics(report)
    if found and report.outcome != "not_compiled":
        messages = tag("pre", "\n".join(map(view.diagnostic_text, found[:30])), cls="log")
    log = report.compile.get("log")
    text = tag("pre", cap(log, 8000, RECORD_FILE), cls="log") if log else None
    return details(
        "Compile and resources", grid, listed, flags, messages, text, summary=view.compile_sentence(report)
    )


def source_section(page: Page) -> Markup | None:
    """Return the candidate's source."""
    if page.source is None:
        return None
    return details("Source", highlight(page.source, where=SOURCE_FILE), summary=source_summary(page))


def source_summary(page: Page) -> str:
    """Return ``25 lines; %kernels edit softmax_cuda opens them in a cell below``."""
    lines = figures.plural((page.source or "").rstrip("\n").count("\n") + 1, "line")
    return f"{lines}; {page.edit_command} opens them in a cell below" if page.edit_command else lines


def attempts(page: Page) -> Markup | None:
    """Return all attempts, folded."""
    inner = attempts_section(page)
    if inner is None:
        return None
    return details("Attempts", *inner, summary=figures.plural(len(page.attempts), "attempt"))


def provenance_section(page: Page) -> Markup:
    """Return where everything came from."""
    return details("Provenance and versions", facts(provenance(page)), summary=page.origin_text)
