"""What a reader finds in a report, whatever ended it, on every surface."""

from __future__ import annotations

import dataclasses
import json
import re

import pytest

from llmkernel.display.bundle import RECORD_MIME, attempts_bundle, report_bundle
from llmkernel.evaluation.report import CheckResult
from llmkernel.providers.base import Reply
from llmkernel.synthesis.events import Attempt
from tests.unit.display import examples as ex
from tests.unit.display.html_check import check_html, visible_text

SURFACES = ("text/html", "text/markdown", "text/plain")


def bundle_of(report, **changes):
    source = ex.BROKEN_SOURCE if report.outcome == "not_compiled" else ex.SOURCE
    return report_bundle(
        report, **{"source": source, "provider": "claude", "model": "claude-opus-5-5", **changes}
    )


def texts(bundle) -> dict[str, str]:
    """Return each surface as running text."""
    markdown = bundle["text/markdown"].replace("\\", "").replace("`", "").replace("**", "")
    return {
        "text/html": visible_text(bundle["text/html"]),
        "text/markdown": re.sub("[ \n]+", " ", markdown),
        "text/plain": re.sub("[ \n]+", " ", bundle["text/plain"]),
    }


VERDICTS = {
    "passed": (
        "✓ passed",
        "1.68 × the best baseline (95 % interval 1.64–1.71)",
        "torch.compile (max-autotune)",
    ),
    "emulation": ("✓ passed", "Timing (emulation)", "says nothing about speed on a GPU"),
    "suspect": ("✓ passed", "Timing (suspect)", "not counted as a win", "202 % of it"),
    "widened": (
        "✓ passed at the user’s tolerance · softmax",
        "The tolerance is the user’s own: The user set the relative tolerance to 0.01.",
    ),
    "wrong_value": (
        "✗ wrong value",
        "0.00193120935",
        "M=127, N=1023",
        "127 of 129921 elements",
        "at [0, 1022]",
        "error 480000 of allowed 9.6 eps, the reference’s own 2.4",
    ),
    "not_compiled": (
        "✗ not compiled",
        'line 24, column 49: error: identifier "expff" is undefined',
        "expff(row",
    ),
    "crashed": (
        "✗ crashed",
        "Fault: illegal address",
        "A thread wrote 4 bytes past the end of y.",
        "[126, 0, 0]",
    ),
    "inconclusive": ("? inconclusive", "The reference hardly depends on w"),
    "rejected": ("⊘ rejected", "host-code"),
    "roofline": (
        "✓ passed",
        "operations a byte: bound by memory; this kernel reaches 3.56 Top/s of the 5.35 Top/s",
    ),
    "unverified": ("? unverified", "there is no reference", "memory checks only, not verified"),
}


@pytest.mark.parametrize("name", ex.ALL)
def test_every_surface_says_what_was_found(name):
    shown = texts(bundle_of(ex.ALL[name]))

    for surface, text in shown.items():
        for expected in VERDICTS[name]:
            assert expected in text, (surface, expected)


@pytest.mark.parametrize("name", ex.ALL)
def test_every_surface_names_what_was_not_checked(name):
    for text in texts(bundle_of(ex.ALL[name])).values():
        assert "What was not checked" in text
        for sentence in ex.NOT_CHECKED:
            assert sentence in text


def test_what_was_not_checked_is_never_folded_away():
    html = bundle_of(ex.PASSED)["text/html"]

    assert html.index("What was not checked") < html.index("<details")


def test_an_empty_negative_space_is_not_called_complete():
    for text in texts(bundle_of(ex.report(not_checked=()))).values():
        assert "a sample is still no proof" in text


def test_evidence_goes_from_the_place_to_what_was_seen_there():
    for text in texts(bundle_of(ex.WRONG_VALUE)).values():
        evidence = text[text.index("1 of 3 draws is wrong.") :]
        order = [
            "heavy tails",
            "result",
            "127 of 129921 elements",
            "at [0, 1022]",
            "got 0, expected 0.00193120935",
        ]
        places = [
            evidence.index(part) for part in (*order, "at [1, 1022]", "values beyond the last full block")
        ]
        assert places == sorted(places)


def test_what_the_compiler_says_stands_once():
    told = {"severity": "error", "line": 5, "column": 2, "message": "identifier foo is undefined"}
    evidence = {"diagnostics": [told], "log": "kernel.cu(5): error: identifier foo is undefined"}
    check = CheckResult("compile", "failed", "line 5 is wrong", evidence)
    report = dataclasses.replace(ex.NOT_COMPILED, checks=(check,), compile={"diagnostics": [told]})
    for kind, text in texts(bundle_of(report)).items():
        assert text.count("identifier foo is undefined") == 1, kind
        assert "Not compiled 1" not in text


def test_failed_checks_come_first():
    for text in texts(bundle_of(ex.WRONG_VALUE)).values():
        checks = text[text.index("What was checked") :]
        assert checks.index("1 of 3 draws is wrong.") < checks.index("guard bands")


@pytest.mark.parametrize("surface", SURFACES)
def test_the_first_line_says_that_the_tolerance_is_the_users(surface):
    text = texts(bundle_of(ex.WIDENED))[surface]

    assert text.removeprefix("### ").startswith("✓ passed at the user’s tolerance")


@pytest.mark.parametrize("name", ["emulation", "suspect"])
def test_no_ratio_is_said_where_none_may_be(name):
    report = ex.ALL[name]
    ratios = [f"{baseline.ratio:.2f} ×" for baseline in report.timing.baselines]

    bundle = bundle_of(report)
    for text in (*texts(bundle).values(), bundle["text/html"]):
        assert report.timing.claim not in text
        assert not any(ratio in text for ratio in ratios)
        assert "faster than the best" not in text


def test_emulation_has_no_speed_of_light():
    for text in texts(bundle_of(ex.EMULATION)).values():
        assert "reached" not in text
        assert "1.00 ms" not in text


def test_timing_rows_have_figures_beside_their_bars():
    checker = check_html(bundle_of(ex.PASSED)["text/html"])
    bars = [a["aria-label"] for _, a in checker.elements if a.get("class") == "bar"]

    assert bars == [
        "this kernel: 94.2 µs",
        "torch.compile (max-autotune): 158 µs, 1.68 × (1.64–1.71)",
        "torch.compile (default): 189 µs, 2.01 × (1.99–2.02)",
        "reference (eager): 254 µs, 2.70 × (2.68–2.71)",
        "speed of light: 62.7 µs, 67 % reached",
    ]


def test_bars_are_as_long_as_what_they_stand_for():
    checker = check_html(bundle_of(ex.PASSED)["text/html"])
    widths = [float(a["style"][6:-1]) for _, a in checker.elements if a.get("class") == "fill"]

    longest = 2.71 * 0.0942  # the upper end of the slowest row's interval
    expected = [100 * ms / longest for ms in (0.0942, 0.158, 0.189, 0.254, 0.0627)]
    assert widths == pytest.approx(expected, abs=0.01)


def test_origin_tokens_and_money_are_told_where_known():
    told = texts(bundle_of(ex.PASSED, usage=ex.USAGE, cost_usd=0.1193))
    for text in told.values():
        assert "12\u202f480 tokens in (9\u202f216 cached), 5\u202f310 out (3\u202f902 reasoning)" in text
        assert "0.1193 USD" in text

    silent = texts(bundle_of(ex.PASSED, origin="library", provider="library", model=""))
    for text in silent.values():
        assert "from the library, no provider was asked" in text
        assert "USD" not in text


@pytest.mark.parametrize("surface", SURFACES)
def test_a_replayed_report_says_so(surface):
    assert "replayed from its record" in texts(bundle_of(ex.PASSED, origin="replayed"))[surface]


def test_attempts_are_shown_with_their_changes():
    bundle = bundle_of(ex.PASSED, attempts=ex.ATTEMPTS)

    html = visible_text(bundle["text/html"])
    assert "Attempt 1: ✗ not compiled" in html
    assert "Attempt 2: ✓ passed" in html
    assert "Changes to the source: +1 −1 lines" in html
    assert "Write softmax over the last axis of x." in html
    assert "1\\. ✗" not in bundle["text/markdown"]
    assert "1. ✗ not compiled: Does not compile" in bundle["text/markdown"]


def test_a_reply_without_source_is_an_attempt_too():
    attempts = (
        Attempt(1, "p", Reply("I cannot do this.", "refusal", "m")),
        Attempt(2, "p", Reply("float x", "max_tokens", "m")),
        Attempt(3, "p", None),
        Attempt(4, "p", Reply("no block", "end", "m")),
    )

    html = visible_text(bundle_of(ex.WRONG_VALUE, attempts=attempts)["text/html"])
    for verdict in ("refused by the provider", "reply cut short", "no reply", "no source in the reply"):
        assert verdict in html
    assert "I cannot do this." in html


def test_a_synthesis_without_success_is_shown_by_its_last_report():
    failed = (ex.ATTEMPTS[0], dataclasses.replace(ex.ATTEMPTS[1], report=ex.WRONG_VALUE))

    bundle = attempts_bundle(failed, provider="claude")
    assert bundle["text/plain"].startswith("✗ wrong value")
    assert "0.1193 USD" in bundle["text/plain"]
    assert "24\u202f960 tokens in" in bundle["text/plain"]
    assert attempts_bundle((Attempt(1, "p"),)) is None


def test_one_unknown_price_makes_the_sum_unknown():
    free = dataclasses.replace(ex.ATTEMPTS[0], reply=dataclasses.replace(ex.ATTEMPTS[0].reply, cost_usd=None))

    assert "USD" not in attempts_bundle((free, ex.ATTEMPTS[1]))["text/plain"]


def test_the_bundle_is_json_with_the_record_in_it():
    record = {"name": "softmax", "hash": "ab12", "error": float("nan")}

    bundle = bundle_of(ex.PASSED, record=record)
    assert set(bundle) == {*SURFACES, RECORD_MIME}
    again = json.loads(json.dumps(bundle, allow_nan=False))
    assert again[RECORD_MIME] == {**record, "error": "NaN"}
    assert RECORD_MIME not in bundle_of(ex.PASSED)


def test_a_report_that_was_saved_is_shown_alike():
    saved = type(ex.PASSED).from_dict(json.loads(json.dumps(ex.PASSED.to_dict())))

    assert bundle_of(saved) == bundle_of(ex.PASSED)


def test_the_source_can_be_copied_from_the_page():
    text = "".join(check_html(bundle_of(ex.PASSED)["text/html"]).text)

    assert ex.SOURCE.rstrip("\n") in text


def test_every_surface_says_how_the_source_is_edited():
    for text in texts(report_bundle(ex.PASSED, source=ex.SOURCE)).values():
        assert f"%kernels edit {ex.PASSED.name}" in text
    for report in (ex.report(name="my kernel"), ex.report(name="")):
        assert "%kernels" not in "".join(texts(report_bundle(report, source=ex.SOURCE)).values())
    assert "%kernels" not in "".join(texts(report_bundle(ex.PASSED)).values())
