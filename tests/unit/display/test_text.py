"""Tables and reports for a terminal."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmkernel.display import figures
from llmkernel.display.bundle import report_bundle
from llmkernel.display.clean import cap, clean, display_width, one_line
from llmkernel.display.diff import diff_html, diff_summary, diff_text
from llmkernel.display.source import highlight, highlight_lines
from llmkernel.display.text import format_report, format_table
from tests.unit.display import examples as ex
from tests.unit.display.html_check import check_html


@pytest.mark.parametrize("name", ex.ALL)
@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_no_line_is_wider_than_the_terminal(name, width):
    for line in format_report(ex.ALL[name], width).split("\n"):
        assert display_width(line) <= width, line


@pytest.mark.parametrize("name", ex.ALL)
def test_colour_adds_nothing_but_colour(name):
    plain, coloured = format_report(ex.ALL[name]), format_report(ex.ALL[name], is_colour=True)

    assert "\x1b" not in plain
    assert "\x1b[" in coloured
    assert clean(coloured) == plain


def test_a_table_aligns_its_columns():
    text = format_table([["softmax", 1.5], ["gelu", 12]], ["kernel", "ms"], align_right=[1])

    assert text.split("\n") == ["kernel    ms", "───────  ───", "softmax  1.5", "gelu      12"]


def test_a_wide_column_is_wrapped_not_cut():
    text = format_table([["driver", "one two three four five six seven"]], width=24)

    assert text.split("\n") == ["driver  one two three", "        four five six", "        seven"]


def test_wide_characters_count_twice():
    text = format_table([["行列", "x"], ["abcd", "y"]])

    assert text.split("\n") == ["行列  x", "abcd  y"]


cells = st.lists(st.lists(st.text(max_size=40) | st.integers() | st.none(), max_size=4), max_size=4)


@given(cells, st.integers(20, 100))
def test_a_table_keeps_every_character(rows, width):
    text = format_table(rows, width=width)

    # A word that does not fit is folded, so characters are counted and not words looked for.
    words = [one_line(cell, 2000) for row in rows for cell in row]
    assert Counter("".join(text.split())) == Counter("".join("".join(words).split()))


def test_an_empty_table_is_empty():
    assert format_table([]) == ""


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, "0"),
        (0.0942, "0.0942"),
        (1.5, "1.50"),
        (999.6, "1000"),
        (480000.0, "480000"),
        (1.2e-7, "1.20e-7"),
        (float("nan"), "nan"),
        (float("-inf"), "-inf"),
        (None, "–"),
        ("inf", "inf"),
        (-2.0, "-2.00"),
    ],
)
def test_significant_digits(value, expected):
    assert figures.significant(value) == expected


@given(st.floats(1e-4, 9.9e6))
def test_significant_digits_are_right(value):
    assert float(figures.significant(value)) == pytest.approx(value, rel=5.1e-3)


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (figures.time(0.0942), "94.2 µs"),
        (figures.time(0.254), "0.254 ms"),
        (figures.time(12.4), "12.4 ms"),
        (figures.time(2500.0), "2.50 s"),
        (figures.time(None), "–"),
        (figures.seconds(0.083), "0.08 s"),
        (figures.seconds(125.2), "2 min 05 s"),
        (figures.size(0), "0 B"),
        (figures.size(268_435_456), "268 MB"),
        (figures.size(3e15), "3000 TB"),
        (figures.count_of(137e9, "operations"), "137 billion operations"),
        (figures.count_of(1200, "operations"), "1\u202f200 operations"),
        (figures.money(None), ""),
        (figures.money(0.01234), "0.0123 USD"),
        (figures.money(3.456), "3.46 USD"),
        (figures.plural(1, "check"), "1 check"),
    ],
)
def test_figures_read_well(made, expected):
    assert made == expected


@given(st.text())
def test_clean_text_is_clean_and_stays_so(text):
    cleaned = clean(text)

    assert "\x1b" not in cleaned
    assert "\r" not in cleaned
    assert clean(cleaned) == cleaned
    cleaned.encode()


@given(st.text(alphabet="abc \n\t(){};<>&é行", max_size=200))
def test_ordinary_text_is_left_alone(text):
    assert clean(text) == text


@given(st.text(max_size=300), st.integers(1, 100))
def test_a_cut_text_keeps_its_beginning(text, limit):
    cut = cap(text, limit, "the log")

    assert clean(cut) == cut
    # A terminal sequence that the cut splits may leave its number behind.
    if cut != clean(text) and not {"\x1b", "\x9b"} & set(text):
        head, _, note = cut.rpartition("\n")
        assert clean(text).startswith(head)
        assert len(head) <= limit
        assert "full text in the log" in note


@given(st.text(max_size=300))
def test_highlighting_loses_no_character(text):
    html = highlight(text)

    assert "".join(check_html(html).text) == clean(text).rstrip("\n")


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("//! f<<<1, 1>>>(x)", '<span class="h">//! f&lt;&lt;&lt;1, 1&gt;&gt;&gt;(x)</span>'),
        (
            "__global__ void f(",
            '<span class="k">__global__ </span><span class="t">void </span><span class="f">f</span>(',
        ),
        ("#pragma unroll", '<span class="p">#pragma unroll</span>'),
        ("x = 0x1Fu + 1.5e-3f;", 'x = <span class="n">0x1Fu </span>+ <span class="n">1.5e-3f</span>;'),
        (r'"a\"b" /* c */', r'<span class="s">&quot;a\&quot;b&quot; </span><span class="c">/* c */</span>'),
        ("uint32_t x1y", '<span class="t">uint32_t </span>x1y'),
    ],
)
def test_code_is_told_apart(code, expected):
    assert highlight_lines(code) == [expected]


def test_a_comment_over_lines_is_one_on_each():
    assert highlight_lines("/* a\n b */ int") == [
        '<span class="c">/* a</span>',
        '<span class="c"> b */ </span><span class="t">int</span>',
    ]


def test_a_diff_shows_what_changed():
    assert diff_text("a\nb\nc\n", "a\nB\nc\n").split("\n") == ["@@ -1,3 +1,3 @@", " a", "-b", "+B", " c"]
    assert diff_summary("a\nb\n", "a\nB\nC\n") == "+2 −1 lines"
    assert diff_summary("a", "a") == "unchanged"
    assert "unchanged" in diff_html("a", "a")
    assert '<span class="add">+&lt;b&gt;</span>' in diff_html("a", "<b>")


def test_a_long_path_is_broken_behind_its_slashes():
    text = format_table([["headers", "/usr/lib/python3.11/site-packages/nvidia/include, and more"]], width=40)

    assert text.split("\n") == [
        "headers  /usr/lib/python3.11/",
        "         site-packages/nvidia/include,",
        "         and more",
    ]


def test_a_number_is_never_parted_from_its_unit():
    report = replace(ex.ALL["passed"], seconds={"quick": 0.31, "full": 3.3, "timing": 0.23, "total": 5.4})
    for width in range(58, 101):  # below, words of the widest table are broken too
        lines = format_report(report, width).split("\n")

        assert "total 5.4 s" in " ".join(line.strip() for line in lines)
        assert not [line for line in lines if re.match(r"\s*(s|ms|µs|eps|B|kB|×|%|·)( \S|,|;|$)", line)]
        assert all(display_width(line) <= width for line in lines)
        assert "\u00a0" not in "".join(lines)


def test_a_cell_that_is_narrower_than_a_number_with_its_unit_is_broken_between_them():
    assert format_table([["12345 ms"]], width=5) == "12345\nms"


def test_a_page_holds_numbers_and_units_together_and_leaves_code_alone():
    report = replace(ex.ALL["passed"], headline="Took 5 ms, `x = 5 s`, 3 × 4.", seconds={"total": 5.4})
    html = str(report_bundle(report)["text/html"])

    assert "Took 5\u00a0ms, <code>x = 5 s</code>, 3\u00a0×\u00a04." in html
    assert "total 5.4\u00a0s" in html
