"""What a tool's answer is worth; the tools themselves run in tests/gpu."""

from pathlib import Path

import pytest

from llmkernel.devices.cuda import sanitizer
from llmkernel.devices.cuda.sanitizer import SanitizerFinding, SanitizerRun
from llmkernel.devices.plan import LaunchPlan
from llmkernel.evaluation.tools import run_tool

ROGUES = Path(__file__).parents[2] / "rogues"
REUSED = (ROGUES / "softmax_shared_reused.cu").read_text()
HONEST = (ROGUES / "honest_softmax_block.cu").read_text()


def race(lines, is_warning):
    return SanitizerFinding(
        "data_race", "Race between two accesses.", line=16, lines=lines, is_warning=is_warning
    )


@pytest.mark.parametrize(
    ("source", "found", "status"),
    [
        (REUSED, race((16, 19), is_warning=True), "failed"),
        (REUSED, race((16, 24), is_warning=True), "warning"),
        (REUSED, race((), is_warning=True), "warning"),
        (HONEST, race((16, 19), is_warning=True), "warning"),
        (HONEST, race((16, 19), is_warning=False), "failed"),
    ],
    ids=["both say so", "another place", "outside of the candidate", "the source has a barrier", "an error"],
)
def test_a_hazard_within_a_warp_counts_where_the_source_shows_no_barrier(monkeypatch, source, found, status):
    monkeypatch.setattr(sanitizer, "run_sanitizer", lambda *_: SanitizerRun("racecheck", (found,), 1.0))
    result, finding = run_tool("racecheck", "cuda", source, LaunchPlan((), (), ()), {})
    assert result.status == status
    assert (finding is not None) == (status == "failed")
    assert result.evidence["count"] == 1
