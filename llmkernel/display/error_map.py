"""The picture of where a result is wrong, or was never written: as SVG, as characters, and in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from llmkernel.display import figures
from llmkernel.display.clean import one_line
from llmkernel.display.markup import Markup, tag

MAX_BLOCKS = 64
_SHADES = "·░░░▒▒▒▓▓█"
_MAX_RANGES = 3
_MAX_WIDTH, _MAX_HEIGHT, _CELL = 512, 192, 14


@dataclass(frozen=True)
class ErrorMap:
    """What `llmkernel.evaluation.error_map.error_map` made, read from a report that anybody may have written.

    Attributes
    ----------
    name : str
        Of the result.
    shape : tuple of int
    cells : tuple of str
        One string of digits a block of rows.
    matrices : str
        One digit a block of matrices; empty where there is one.
    shows : str
        What is marked: ``wrong`` or ``unwritten`` elements.
    """

    name: str
    shape: tuple[int, ...]
    cells: tuple[str, ...]
    matrices: str
    shows: str = "wrong"


def read_error_map(evidence: Mapping[str, Any]) -> ErrorMap | None:
    """Return the map in a check's evidence; None where there is none, or nothing that is one.

    Nor is there one to look at where every element is wrong: the evidence says that in words.
    """
    data = evidence.get("map")
    if not isinstance(data, Mapping):
        return None
    sizes, lines, matrices = data.get("shape"), data.get("cells"), data.get("matrices", "")
    if not isinstance(sizes, list | tuple) or not isinstance(lines, list | tuple):
        return None
    shape = tuple(s for s in sizes if type(s) is int and s > 0)
    cells = tuple(c for c in lines if isinstance(c, str))
    drawn = [*cells, matrices] if matrices else [*cells]
    if len(shape) != len(sizes) or len(cells) != len(lines) or not shape or not cells or len(shape) > 32:
        return None
    if not all(isinstance(d, str) and d.isascii() and d.isdigit() and len(d) <= MAX_BLOCKS for d in drawn):
        return None
    if len({len(c) for c in cells}) != 1 or set("".join(cells)) in ({"0"}, {"9"}):
        return None
    rows = shape[-2] if len(shape) > 1 else 1
    if len(cells) > min(rows, MAX_BLOCKS) or len(cells[0]) > shape[-1]:
        return None
    name = one_line(evidence.get("result", "") or "the result", 60)
    return ErrorMap(name, shape, cells, matrices, shows_of(data))


def shows_of(data: Any) -> str:
    """Return what a map in a check's evidence marks: ``unwritten``, or ``wrong`` where it does not say."""
    is_unwritten = isinstance(data, Mapping) and data.get("shows") == "unwritten"
    return "unwritten" if is_unwritten else "wrong"


def map_sentence(picture: ErrorMap) -> str:
    """Return where the result is wrong in words: what the picture shows, for who does not see it."""
    shape = " × ".join(map(str, picture.shape))
    rows = ["9" if line.strip("0") else "0" for line in picture.cells]
    columns = [
        "9" if any(line[i] != "0" for line in picture.cells) else "0" for i in range(len(picture.cells[0]))
    ]
    parts = []
    if picture.matrices:
        count = 1
        for size in picture.shape[:-2]:
            count *= size
        parts.append(_axis("matrices", "matrix", picture.matrices, count))
    if len(picture.shape) > 1:
        parts.append(_axis("rows", "row", "".join(rows), picture.shape[-2]))
        parts.append(_axis("columns", "column", "".join(columns), picture.shape[-1]))
    else:
        parts.append(_axis("positions", "position", "".join(columns), picture.shape[-1]))
    return f"{picture.name} ({shape}) has {picture.shows} elements in {', '.join(p for p in parts if p)}"


def _axis(many: str, one: str, digits: str, size: int) -> str:
    """Return ``rows 0–126`` or ``all rows``; a range holds whole blocks."""
    if size == 1:
        return ""
    if "0" not in digits:
        return f"all {many}"
    ranges, place = [], 0
    for is_wrong, run in groupby(digits, key=lambda d: d != "0"):
        length = len(list(run))
        if is_wrong:
            first = -(-place * size // len(digits))
            last = -(-(place + length) * size // len(digits)) - 1
            ranges.append(f"{first}–{last}" if last > first else str(first))
        place += length
    more = f" and {len(ranges) - _MAX_RANGES} more ranges" if len(ranges) > _MAX_RANGES else ""
    is_single = len(ranges) == 1 and "–" not in ranges[0]
    return f"{one if is_single else many} {', '.join(ranges[:_MAX_RANGES])}{more}"


def map_caption(picture: ErrorMap) -> str:
    """Return how to read the picture."""
    across = figures.plural(-(-picture.shape[-1] // len(picture.cells[0])), "column")
    if len(picture.shape) == 1:
        block = figures.plural(-(-picture.shape[-1] // len(picture.cells[0])), "element")
    else:
        block = f"{figures.plural(-(-picture.shape[-2] // len(picture.cells)), 'row')} × {across}"
    together = ", all matrices together" if picture.matrices else ""
    return f"one square: up to {block}{together}; the stronger its colour, the more of it is {picture.shows}"


def map_figure(evidence: Mapping[str, Any]) -> Markup | None:
    """Return the map as a figure; without a style sheet, and without SVG, its sentence stays."""
    picture = read_error_map(evidence)
    if picture is None:
        return None
    drawn = [_drawing((picture.matrices,), f"Matrices: {map_sentence(picture)}")] if picture.matrices else []
    title = "Error map" if picture.shows == "wrong" else "Map of unwritten elements"
    drawn.append(_drawing(picture.cells, f"{title}: {map_sentence(picture)}"))
    sentence = tag("strong", map_sentence(picture))
    return tag("div", *drawn, tag("p", sentence, f"; {map_caption(picture)}.", cls="meta"), cls="emap")


def _drawing(cells: Sequence[str], label: str) -> Markup:
    across, down = len(cells[0]), len(cells)
    width = min(_MAX_WIDTH, max(_CELL * across, 40))
    height = min(_MAX_HEIGHT, _CELL * down)
    paths = []
    for level in "123456789":
        path = _path(cells, level)
        if path:
            # Colours as attributes: hosts that drop style sheets show it too.
            paths.append(tag("path", d=path, stroke="currentColor", stroke_opacity=_opacity(int(level))))
    frame = tag("rect", width=across, height=down, fill="currentColor", fill_opacity="0.05")
    return tag(
        "svg", frame, *paths, role="img", aria_label=label, width=width, height=height,
        viewBox=f"0 0 {across} {down}", preserveAspectRatio="none", shape_rendering="crispEdges",
    )  # fmt: skip


def _opacity(level: int) -> str:
    return "1" if level == 9 else f"{0.28 + 0.07 * (level - 1):.2f}"


def _path(cells: Sequence[str], level: str) -> str:
    """Return one stroke a run of squares of `level`; the unit is a square."""
    parts = []
    for row, line in enumerate(cells):
        place, at = 0, None
        for digit, run in groupby(line):
            length = len(list(run))
            if digit == level:
                move = f"M{place} {row}.5" if at is None else f"m{place - at} 0"
                parts.append(f"{move}h{length}")
                at = place + length
            place += length
    return "".join(parts)


def map_lines(picture: ErrorMap) -> list[str]:
    """Return the map as lines of characters, at most 64 columns wide: a strip of all matrices first."""
    lines = [picture.matrices, *picture.cells] if picture.matrices else [*picture.cells]
    shaded = ["".join(_SHADES[int(d)] for d in line) for line in lines]
    return [*shaded[:1], "", *shaded[1:]] if picture.matrices else shaded
