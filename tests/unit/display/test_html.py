"""HTML that survives hosts, readers and narrow windows."""

from __future__ import annotations

import re

import pytest

from llmkernel.display.bundle import report_bundle
from llmkernel.display.kernel import repr_html_for_kernel, repr_text_for_kernel
from llmkernel.display.style import root_class, style_sheet
from tests.unit.display import examples as ex
from tests.unit.display.html_check import check_html, visible_text


def html_of(report, **changes) -> str:
    return report_bundle(report, **{"source": ex.SOURCE, "attempts": ex.ATTEMPTS, **changes})["text/html"]


@pytest.mark.parametrize("name", ex.ALL)
def test_it_nests_well_and_needs_nothing_from_outside(name):
    checker = check_html(html_of(ex.ALL[name]))

    assert len(checker.sheets) == 1


@pytest.mark.parametrize("name", ex.ALL)
def test_headings_go_down_one_level_at_a_time(name):
    levels = [
        int(tag[1]) for tag, _ in check_html(html_of(ex.ALL[name])).elements if re.fullmatch(r"h\d", tag)
    ]

    assert levels[0] == 3
    assert set(levels[1:]) == {4}


@pytest.mark.parametrize("name", ex.ALL)
def test_every_table_heads_its_rows_and_columns(name):
    for tag, attributes in check_html(html_of(ex.ALL[name])).elements:
        if tag == "th":
            assert attributes.get("scope") in ("col", "row")
        if tag == "table":
            assert attributes.get("aria-label")


def test_no_heading_enters_a_table_of_contents():
    for tag, attributes in check_html(html_of(ex.PASSED)).elements:
        if tag in ("h3", "h4"):
            assert attributes["class"] == "jp-toc-ignore"


def test_colour_alone_says_nothing():
    # All colour comes from classes: what is left without them still says everything.
    text = visible_text(html_of(ex.WRONG_VALUE))

    assert "✗ failed" in text
    assert "✓ passed" in text
    assert "✗ wrong value" in text


def test_every_rule_is_scoped():
    sheet = re.sub(r"@(?:media|container)[^{]*\{", "", style_sheet())
    for selectors in re.findall(r"([^{}]+)\{", sheet):
        for selector in re.sub(r"\(.*?\)", "", selectors).split(","):
            assert f".{root_class()}" in selector, selector


def test_every_class_of_a_report_has_the_root_around_it():
    first = check_html(html_of(ex.PASSED)).elements[0]

    assert first[0] == "div"
    assert root_class() in first[1]["class"].split()
    assert first[1]["role"] == "region"
    assert first[1]["aria-label"] == "Report of softmax: passed"


def test_light_and_dark_follow_the_host_before_the_system():
    sheet = style_sheet()

    system = sheet.index("prefers-color-scheme:dark")
    for host in (
        '[data-jp-theme-light="true"]',
        '[data-jp-theme-light="false"]',
        ".vscode-light",
        ".vscode-dark",
    ):
        assert sheet.index(host) > system


def _luminance(colour: str) -> float:
    digits = colour[1:] if len(colour) == 7 else "".join(2 * c for c in colour[1:])
    parts = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one: str, other: str) -> float:
    """WCAG 2.2, contrast ratio."""
    high, low = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("block", [0, 1])
def test_text_has_the_contrast_that_wcag_asks_for(block):
    palettes = re.findall(r"color-scheme:(?:light|dark);([^}]+)", style_sheet())
    palette = dict(re.findall(r"--(\w+):(#\w+)", palettes[block]))

    grounds = {
        "fg": ("bg", "soft", "goodbg", "badbg", "unsbg"),
        "mut": ("bg", "soft", "goodbg", "badbg", "unsbg"),
    }
    grounds |= {"good": ("bg", "soft", "goodbg"), "bad": ("bg", "soft", "badbg"), "uns": ("bg", "unsbg")}
    grounds |= dict.fromkeys("ktcsnpf", ("soft",))
    for text, backs in grounds.items():
        for back in backs:
            assert _contrast(palette[text], palette[back]) >= 4.5, (text, back)


def test_a_generated_kernel_is_shown_compactly():
    values = {"name": "softmax_cuda", "signature": ex.SIGNATURE, "report": ex.PASSED}

    html = repr_html_for_kernel(**values, source=ex.SOURCE, provider="claude")
    text = visible_text(html)
    for expected in (
        "✓ passed · softmax_cuda",
        "1.68 × the best baseline",
        "softmax(x: T[M, N])",
        "25 lines",
    ):
        assert expected in text
    assert html.index(ex.SIGNATURE.split("(")[0]) < html.index("<details")
    assert repr_text_for_kernel(**values).startswith("<softmax_cuda: ✓ passed; softmax(x: T[M, N])")


def test_a_kernel_that_was_not_verified_says_so():
    html = repr_html_for_kernel(name="f", signature="f()", report=ex.UNVERIFIED, source=ex.SOURCE)

    assert "? unverified" in visible_text(html)
    assert "there is no reference" in visible_text(html)
