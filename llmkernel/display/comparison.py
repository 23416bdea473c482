"""Two kernels side by side, for a notebook."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from llmkernel.display import figures, view
from llmkernel.display.clean import one_line
from llmkernel.display.html_page import frame, table
from llmkernel.display.markup import tag
from llmkernel.display.text import format_table, wrap

if TYPE_CHECKING:
    from llmkernel.evaluation.comparing import Comparison

_WIDTH = 80


def comparison_bundle(found: Comparison) -> dict[str, Any]:
    """Return the MIME bundle of a comparison.

    Returns
    -------
    dict
        ``text/html`` and ``text/plain`` (80 columns).
    """
    labels = [one_line(label, 80) for label in found.labels]
    title = f"{labels[0]} and {labels[1]}" + (" (emulation)" if found.is_emulation else "")
    rows = _rows(found)
    headers = ["", *labels]
    device = view.device_text(found.reports[0])
    caption = f"Both passed on these inputs on {device}, and were timed in turn in one run; medians."
    if not found.is_emulation:
        caption += f" The ratio is the time of {labels[1]} over that of {labels[0]}, with its 95 % interval."
    html = tag(
        "div",
        tag("p", tag("strong", title)),
        tag("p", one_line(found.claim, 400), cls="lead"),
        table(headers, rows, frozenset({1, 2}), label=title),
        tag("p", caption, cls="meta"),
        cls="in flat",
    )
    grid = format_table(rows, headers, width=_WIDTH, align_right=(1, 2), indent="  ")
    lines = [title, *wrap(one_line(found.claim, 400), _WIDTH, "  "), "", grid, "", *wrap(caption, _WIDTH)]
    return {"text/html": str(frame(html, title)), "text/plain": "\n".join(lines)}


def _rows(found: Comparison) -> list[list[str]]:
    first, second = found.rows
    unit = figures.time_unit(first.median_ms)
    name, factor = unit
    rows = [["median", *(figures.time(r.median_ms, unit) for r in found.rows)]]
    spreads = [f"{figures.interval(r.p20_ms * factor, r.p80_ms * factor)} {name}" for r in found.rows]
    rows.append(["20–80 %", *spreads])
    if second.ratio is not None:
        interval = figures.interval(second.ratio_low, second.ratio_high)
        rows.append(["ratio", "1", f"{figures.ratio(second.ratio)} ({interval})"])
    rows.append(["samples", str(first.samples), str(second.samples)])
    for label, key, write in (
        ("registers", "registers", str),
        ("spills", "spill_bytes", figures.size),
        ("occupancy", "occupancy", lambda value: f"{100 * value:.0f} %"),
    ):
        cells = [_of_kernels(r, key, write) for r in found.resources]
        if any(cells):
            rows.append([label, *(cell or "–" for cell in cells)])
    return rows


def _of_kernels(resources: Mapping[str, Mapping[str, Any]], key: str, write: Any) -> str:
    """Return one figure for each kernel of a `.cu` file, joined."""
    return ", ".join(write(data[key]) for data in resources.values() if data.get(key) is not None)
