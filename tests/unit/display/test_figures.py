"""The pictures of a report: where a result is wrong, and the roofline."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from llmkernel.display.error_map import map_figure, map_lines, map_sentence, read_error_map
from llmkernel.display.html_timing import timing_section
from llmkernel.display.roofline import rate_text, read_roofline, roofline_figure, roofline_sentence
from llmkernel.evaluation.error_map import error_map
from tests.unit.display import examples as ex
from tests.unit.display.html_check import check_html, visible_text


def evidence(wrong: np.ndarray, name: str = "y") -> dict:
    return {"result": name, "map": error_map(wrong.shape, [np.flatnonzero(wrong)])}


def marked(shape: tuple[int, ...], *where: object) -> np.ndarray:
    wrong = np.zeros(shape, bool)
    for place in where:
        wrong[place] = True
    return wrong


def drawn_cells(html: str) -> list[dict[tuple[int, int], str]]:
    """Read every drawing back from its strokes: squares by row and column, with their opacity."""
    found = []
    for drawing in re.findall(r"<svg.*?</svg>", html, re.DOTALL):
        cells = {}
        for path, opacity in re.findall(r'<path d="([^"]+)"[^>]*stroke-opacity="([^"]+)"', drawing):
            x = y = 0
            for command, a, b in re.findall(r"([Mmh])(-?\d+)(?: ([\d.]+))?", path):
                if command == "M":
                    x, y = int(a), int(float(b))
                elif command == "m":
                    x += int(a)
                else:
                    cells |= {(y, x + i): opacity for i in range(int(a))}
                    x += int(a)
        found.append(cells)
    return found


@settings(max_examples=60, deadline=None)
@given(
    hnp.arrays(np.bool_, hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=30)).filter(
        lambda a: a.size >= 2 and a.any() and not a.all()
    )
)
def test_what_is_drawn_is_what_is_wrong(wrong):
    found = evidence(wrong)
    html = str(map_figure(found))
    check_html(html)
    cells = drawn_cells(html)[-1]
    digits = found["map"]["cells"]

    assert set(cells) == {(r, c) for r, line in enumerate(digits) for c, d in enumerate(line) if d != "0"}
    assert {place for place, opacity in cells.items() if opacity == "1"} == {
        (r, c) for r, line in enumerate(digits) for c, d in enumerate(line) if d == "9"
    }
    lines = map_lines(read_error_map(found))[-len(digits) :]
    assert ["".join("0" if c == "·" else "1" for c in line) for line in lines] == [
        "".join("0" if d == "0" else "1" for d in line) for line in digits
    ]


@pytest.mark.parametrize("shape", [(6,), (4, 4), (2, 3, 5)])
def test_nothing_is_drawn_where_all_or_nothing_is_wrong(shape):
    assert map_figure(evidence(np.ones(shape, bool))) is None
    assert map_figure(evidence(np.zeros(shape, bool))) is None


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (
            marked((127, 1023), np.s_[:, 1022]),
            "y (127 × 1023) has wrong elements in all rows, columns 1008–1022",
        ),
        (marked((8, 5), np.s_[2:4, 3]), "y (8 × 5) has wrong elements in rows 2–3, column 3"),
        (marked((8, 5), np.s_[0], np.s_[2:4], np.s_[7]), "rows 0, 2–3, 7, all columns"),
        (marked((9, 2), np.s_[::2]), "rows 0, 2, 4 and 2 more ranges"),
        (marked((1000,), np.s_[700:]), "y (1000) has wrong elements in positions 688–999"),
        (marked((8, 96, 130), np.s_[3], np.s_[5]), "matrices 3, 5, all rows, all columns"),
        (marked((2, 4, 3, 5), np.s_[1, 1, 0, 0]), "matrix 5, row 0, column 0"),
        (marked((1, 6), np.s_[0, 1]), "y (1 × 6) has wrong elements in column 1"),
    ],
)
def test_the_picture_is_told_in_words(wrong, sentence):
    picture = read_error_map(evidence(wrong))

    assert sentence in map_sentence(picture)
    html = str(map_figure(evidence(wrong)))
    assert map_sentence(picture) in visible_text(html)
    assert all(dict(a)["aria-label"] for tag, a in check_html(html).elements if tag == "svg")


def test_a_map_of_what_was_not_written_says_so_in_every_form():
    found = evidence(marked((8, 5), np.s_[2:4, 3]))
    found["map"]["shows"] = "unwritten"
    html = str(map_figure(found))

    assert "y (8 × 5) has unwritten elements in rows 2–3, column 3" in visible_text(html)
    assert "the more of it is unwritten" in visible_text(html)
    assert "wrong" not in html
    assert 'aria-label="Map of unwritten elements: y' in html


junk = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=4)
    | st.from_regex(r"\A\d{1,70}\Z"),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["shape", "cells", "matrices"]), inner)
    ),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None)
@given(
    st.fixed_dictionaries(
        {
            "map": junk
            | st.fixed_dictionaries(
                {
                    "shape": junk | st.lists(st.integers(-2, 9)),
                    "cells": junk,
                    "matrices": junk,
                    "shows": junk,
                }
            ),
            "result": junk,
        }
    )
)
def test_a_map_that_anybody_wrote_is_refused_or_drawn(found):
    figure = map_figure(found)
    if figure is not None:
        check_html(str(figure))
        assert max(map(len, map_lines(read_error_map(found))), default=0) <= 64


def test_the_map_stands_in_every_form_of_the_report_and_its_numbers_do_not():
    from llmkernel.display.bundle import report_bundle

    bundle = report_bundle(ex.WRONG_VALUE)
    json.dumps(bundle)
    for kind in ("text/html", "text/markdown", "text/plain"):
        assert "y (127 × 1023) has wrong elements in all rows, columns 1008–1022" in bundle[kind]
        assert "0" * 40 not in bundle[kind]
    assert "·" * 63 + "░" in bundle["text/plain"]


def test_a_plot_is_drawn_where_bytes_operations_and_bandwidth_are_known():
    roof = read_roofline(ex.ROOFLINE)
    assert roof.intensity == pytest.approx(1.25)
    assert roof.allowed(1.25) == pytest.approx(1.25 * 4.28e12)
    assert roof.allowed(1000.0) == 5.1e13
    html = str(roofline_figure(ex.ROOFLINE))

    check_html(html)
    assert "1.25 operations a byte: bound by memory; this kernel reaches 3.56 Top/s of the 5.35 Top/s" in html
    assert html.count("<circle") == 2
    assert html in str(timing_section(ex.ROOFLINE))


@pytest.mark.parametrize(
    "changes",
    [
        {"operations": None},
        {"bytes_moved": None},
        {"is_emulation": True},
        {"device": {}},
        {"device": {"roofline": {"bandwidth_bytes_per_s": 0.0}}},
        {"device": {"roofline": {"bandwidth_bytes_per_s": "much", "operations_per_s": {}}}},
        {"kernel": replace(ex.TIMING.kernel, median_ms=0.0)},
        {"kernel": replace(ex.TIMING.kernel, median_ms=math.nan)},
    ],
)
def test_no_plot_is_drawn_of_what_is_not_known(changes):
    assert roofline_figure(replace(ex.ROOFLINE, **changes)) is None


positive = st.floats(1e-3, 1e3)


@settings(max_examples=40)
@given(
    st.integers(1, 10**15),
    st.integers(1, 10**12),
    positive,
    positive,
    st.none() | st.floats(1e6, 1e16),
    st.floats(1e6, 1e14),
)
def test_everything_is_drawn_inside_the_frame(operations, nbytes, mine, theirs, peak, bandwidth):
    timing = replace(
        ex.ROOFLINE,
        operations=operations,
        bytes_moved=nbytes,
        kernel=replace(ex.TIMING.kernel, median_ms=mine),
        baselines=(replace(ex.TIMING.baselines[1], median_ms=theirs, label=ex.TIMING.best_baseline),),
        device={
            "roofline": {
                "bandwidth_bytes_per_s": bandwidth,
                "operations_per_s": {} if peak is None else {"float32": peak},
            }
        },
    )
    html = str(roofline_figure(timing))
    elements = check_html(html).elements
    width, height = (int(dict(elements[1][1])[k]) for k in ("width", "height"))

    for tag, attributes in elements:
        if tag == "circle":
            assert 0 < float(attributes["cx"]) <= width
            assert 0 < float(attributes["cy"]) <= height
        if tag == "path":
            numbers = [float(n) for n in re.findall(r"-?[\d.]+", attributes["d"])]
            assert all(0 <= n <= max(width, height) for n in numbers)


def test_rates_have_a_unit_that_fits():
    assert [rate_text(r) for r in (1.5e12, 2e9, 3.25e6, 7.0)] == [
        "1.50 Top/s",
        "2.00 Gop/s",
        "3.25 Mop/s",
        "7.00 op/s",
    ]


def test_a_kernel_above_the_ridge_is_bound_by_arithmetic():
    timing = replace(ex.ROOFLINE, operations=10**12)

    assert "bound by arithmetic" in roofline_sentence(read_roofline(timing))
