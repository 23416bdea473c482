"""What a tool's answer is worth; the tools themselves run in tests/gpu."""

from pathlib import Path

import numpy as np
import pytest

from llmkernel.devices.cuda import sanitizer
from llmkernel.devices.cuda.sanitizer import SanitizerFinding, SanitizerRun
from llmkernel.devices.plan import LaunchPlan
from llmkernel.evaluation.judge import quick_and_full
from llmkernel.evaluation.tools import evidence_of, run_tool, workloads_for_tools
from llmkernel.problem.problem import make_problem
from llmkernel.problem.reference import make_reference

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
    monkeypatch.setattr(sanitizer, "run_sanitizer", lambda *_, **__: SanitizerRun("racecheck", (found,), 1.0))
    result, finding = run_tool("racecheck", "cuda", source, LaunchPlan((), (), ()), {})
    assert result.status == status
    assert (finding is not None) == (status == "failed")
    assert result.evidence["count"] == 1


def test_evidence_keeps_element_0_and_leaves_out_what_is_unknown():
    finding = SanitizerFinding("out_of_bounds", "Read.", argument="x", element=0, thread=(0, 0, 0))
    assert evidence_of(finding) == {
        "outcome": "out_of_bounds",
        "message": "Read.",
        "argument": "x",
        "element": 0,
        "thread": (0, 0, 0),
    }
    assert evidence_of(race((16, 19), is_warning=True))["line"] == 16


def test_on_a_gpu_tools_see_a_small_draw_and_long_axes():
    problem = make_problem(*make_reference(lambda x: x.sum(-1), [np.ones((40, 30), np.float32)]))
    quick, full = quick_and_full(problem, "full")
    taken = [*quick, *full]
    chosen = workloads_for_tools("cuda", problem, taken, quick)
    assert [max(w.sizes.values()) > 1 << 16 for w in chosen] == [False, True, True]
    assert chosen[0] in quick
    assert len(workloads_for_tools("cuda", problem, quick, quick)) == 1
