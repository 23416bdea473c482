"""Tables of records, the difference of two, and comparisons: what they say, and that nothing in them is markup."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from llmkernel.display.comparison import comparison_bundle
from llmkernel.display.profile import profile_bundle
from llmkernel.display.records import diff_bundle, history_bundle, listing_bundle, record_bundle
from llmkernel.errors import RecordError
from llmkernel.evaluation.comparing import Comparison
from llmkernel.evaluation.profiling import Figure, Profile
from llmkernel.evaluation.report import Measurement
from llmkernel.records.record import Record, RecordedProblem, source_digest
from llmkernel.records.store import StoredRecord
from tests.unit.display import examples as ex
from tests.unit.display.html_check import check_html, visible_text

EVIL = "<b>`x`|</b>&"


def stored(report=ex.PASSED, source=ex.SOURCE, *, is_edited=False, version="", fingerprint="f" * 64):
    record = Record(
        "softmax_cuda",
        RecordedProblem("fast", "def softmax(x): ...", fingerprint, ex.SIGNATURE),
        source_digest(source),
        "2026-11-30T10:15:00+00:00",
        report=report.to_dict(),
        provider="claude",
        model=EVIL,
    )
    return StoredRecord(record, source, Path("kernels/softmax_cuda"), is_edited=is_edited, version=version)


@pytest.mark.parametrize(
    ("report", "speed"),
    [
        (ex.PASSED, f"1.68 × {ex.PASSED.timing.best_baseline}"),
        (ex.SUSPECTED, "suspect"),
        (ex.EMULATION, "emulated"),
        (ex.UNVERIFIED, "not timed"),
        (ex.report(timing=replace(ex.PASSED.timing, baselines=(), best_baseline=None)), "no baseline"),
    ],
)
def test_the_table_has_the_speed_against_the_best_baseline(report, speed):
    bundle = listing_bundle([stored(report)], "kernels", [RecordError(f"{EVIL} cannot be read.")])
    check_html(bundle["text/html"])
    for text in (bundle["text/plain"], visible_text(bundle["text/html"])):
        for expected in ("1 kernel in kernels", "softmax_cuda", speed, "claude", "2026-11-30 10:15", EVIL):
            assert expected in text


def test_an_unverified_kernel_is_called_so_also_where_it_was_edited():
    edited = stored(ex.UNVERIFIED, is_edited=True, fingerprint="")
    assert "unverified, edited since" in listing_bundle([edited], "kernels")["text/plain"]
    assert "? unverified" in record_bundle(stored(ex.UNVERIFIED), "softmax_cuda")["text/plain"]


def test_versions_are_numbered_from_the_one_in_place():
    bundle = history_bundle("softmax_cuda", [stored(), stored(version="20261129T000000Z-1a2b3c4d")])
    text = bundle["text/plain"]
    assert text.index("softmax_cuda@0") < text.index("softmax_cuda@1") < text.index("20261129T000000Z")
    check_html(bundle["text/html"])


def test_a_difference_shows_both_sides_as_text():
    bundle = diff_bundle(("old", stored()), ("new", stored(source=ex.SOURCE + f"// {EVIL}\n")))
    check_html(bundle["text/html"])
    for text in (bundle["text/plain"], visible_text(bundle["text/html"])):
        assert "old → new: +1 −0 lines" in text
        assert f"+// {EVIL}" in text


def comparison(*, is_emulation):
    rows = (Measurement(EVIL, 0.010, 0.009, 0.011, 50), Measurement("slow", 0.020, 0.019, 0.021, 50))
    if not is_emulation:
        rows = rows[0], replace(rows[1], ratio=2.0, ratio_low=1.9, ratio_high=2.1)
    resources = (
        {"k": {"registers": 32, "spill_bytes": 0, "occupancy": 0.5}},
        {"a": {"registers": 40}, "b": {"registers": 8}},
    )
    claim = (
        "Emulated on the CPU." if is_emulation else "It is 2.00 × as fast as slow (95 % interval 1.90–2.10)."
    )
    return Comparison((EVIL, "slow"), (ex.PASSED, ex.PASSED), rows, resources, is_emulation, claim)


def test_two_kernels_stand_side_by_side():
    bundle = comparison_bundle(comparison(is_emulation=False))
    check_html(bundle["text/html"])
    for text in (bundle["text/plain"], visible_text(bundle["text/html"])):
        for expected in (
            EVIL,
            "slow",
            "10.0 µs",
            "20.0 µs",
            "2.00 × (1.90–2.10)",
            "40, 8",
            "50 %",
            "as fast as slow",
        ):
            assert expected in text
    emulated = comparison_bundle(comparison(is_emulation=True))["text/plain"]
    assert "emulation" in emulated
    assert "ratio" not in emulated


def test_each_figure_of_a_profile_comes_with_its_meaning():
    found = Profile(
        "Nsight Compute", EVIL, (Figure("DRAM throughput", "91 %", f"Fewer {EVIL}."),), ("Measured once.",)
    )
    bundle = profile_bundle("softmax_cuda", ex.SIGNATURE, found)
    check_html(bundle["text/html"])
    for text in (bundle["text/plain"], visible_text(bundle["text/html"])):
        for expected in (
            "Nsight Compute",
            "DRAM throughput",
            "91 %",
            f"Fewer {EVIL}.",
            "Measured once.",
            EVIL,
        ):
            assert expected in text
