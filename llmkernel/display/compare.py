"""Two sources side by side, equal lines beside each other."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher

from llmkernel.display.clean import cap
from llmkernel.display.diff import diff_summary
from llmkernel.display.markup import Markup, join, tag
from llmkernel.display.source import highlight_lines

MAX_LINES = 1500
MAX_ROWS = 400
CONTEXT = 3
_LINE = 400

# Number of the line, from 1, and its text; None where the other side has more.
Side = tuple[int, str] | None
Row = tuple[Side, Side]


def compare_html(old: str, new: str, old_title: str, new_title: str) -> Markup:
    """Return a table with one line of each source in a row; changed lines carry ``−`` and ``+``.

    Long runs of equal lines are left out and counted.
    """
    before, after = _lines(old), _lines(new)
    shown = highlight_lines("\n".join(before)), highlight_lines("\n".join(after))
    rows = list(_rows(before, after))
    body = [_gap(row) if isinstance(row, int) else _row(row, shown) for row in rows[:MAX_ROWS]]
    left = len(rows) - MAX_ROWS
    if left > 0:
        body.append(tag("tr", tag("td", f"… {left} more rows", colspan="4", cls="mut")))
    head = tag("tr", *(tag("th", title, scope="col", colspan="2") for title in (old_title, new_title)))
    label = f"{old_title} beside {new_title}: {diff_summary(old, new)}"
    widths = tag("colgroup", tag("col", cls="no"), tag("col"), tag("col", cls="no"), tag("col"))
    table = tag("table", widths, tag("thead", head), tag("tbody", join(body)), cls="cmp", aria_label=label)
    return tag("div", table, cls="wrap", tabindex="0", role="region", aria_label=label)


def _lines(source: str) -> list[str]:
    return [line[:_LINE].expandtabs(4) for line in cap(source, 60_000).splitlines()[:MAX_LINES]] or [""]


def _rows(old: list[str], new: list[str]) -> Iterator[Row | int]:
    """Yield pairs of lines, and how many equal ones are left out between two."""
    for kind, a, b, c, d in SequenceMatcher(None, old, new).get_opcodes():
        if kind == "equal":
            skipped = b - a - 2 * CONTEXT
            for i in range(a, b):
                if skipped > 1 and i == a + CONTEXT:
                    yield skipped
                if skipped > 1 and a + CONTEXT <= i < b - CONTEXT:
                    continue
                yield (i + 1, old[i]), (c + i - a + 1, new[c + i - a])
            continue
        for i in range(max(b - a, d - c)):
            left = (a + i + 1, old[a + i]) if a + i < b else None
            right = (c + i + 1, new[c + i]) if c + i < d else None
            yield left, right


def _gap(count: int) -> Markup:
    return tag("tr", tag("td", f"… {count} equal lines", colspan="4", cls="mut"))


def _row(row: Row, shown: tuple[list[Markup], list[Markup]]) -> Markup:
    left, right = row
    is_equal = left is not None and right is not None and left[1] == right[1]
    cells: list[Markup] = []
    for side, lines, mark, cls in ((left, shown[0], "−", "del"), (right, shown[1], "+", "add")):
        if side is None:
            cells += [tag("td"), tag("td")]
            continue
        number = side[0]
        cells.append(tag("td", number, cls="num mut"))
        code = tag("code", "  " if is_equal else f"{mark} ", lines[number - 1])
        cells.append(tag("td", code, cls=None if is_equal else cls))
    return tag("tr", *cells)
