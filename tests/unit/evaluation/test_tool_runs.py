"""Which tools a verification runs by itself, and what it says of those that it does not run."""

import numpy as np
import pytest

from llmkernel import evaluate
from llmkernel.evaluation.judge import Judge, quick_and_full
from llmkernel.evaluation.report import CheckResult
from llmkernel.evaluation.tool_runs import ToolRuns, begin_tools
from llmkernel.evaluation.tools import TOOLS, not_looked_for
from llmkernel.evaluation.trial import Verdict
from llmkernel.problem.problem import make_problem
from llmkernel.problem.reference import make_reference

TWICE = """//! twice(x: float32[N]) -> y: float32[N]
//! twice<<<ceil_div(N, 128), 128>>>(x, y, N)
__global__ void twice(const float* x, float* y, int N) {
    int i = blockIdx.x * 128 + threadIdx.x;
    if (i < N) y[i] = x[i] + x[i];
}
"""
# The element behind the last one is read and not used.
LOOKS_FURTHER = TWICE.replace(
    "x[i] + x[i];", "x[i] + x[i];\n    if (i < N && x[i + 1] == 1234.5f) y[i] = x[i];"
)
UNKNOWN = TWICE.replace("if (i", 'unsigned s; asm volatile("mov.u32 %0, %smid;" : "=r"(s)); if (i')


def judged(source, level):
    return evaluate(source, lambda x: 2 * x, [np.ones(300, np.float32)], device="cpu", level=level)


def prepared(source):
    problem = make_problem(*make_reference(lambda x: 2 * x, [np.ones(300, np.float32)]))
    judge = Judge(problem, source, "cpu")
    judge.parse()
    limits = judge.open()
    quick, _ = quick_and_full(problem, "quick")
    draws = [judge.prepare_draw(w, limits) for w in judge.compile(quick, limits)]
    return judge, draws, limits, quick


def test_a_full_verification_looks_into_runs_unasked():
    report = judged(TWICE, "full")
    assert report.outcome == "passed", report.headline
    statuses = {c.name: c.status for c in report.checks}
    assert [statuses[f"checked mode {tool}"] for tool in TOOLS] == ["passed"] * 4
    assert not any("tools" in sentence for sentence in report.not_checked)


def test_an_access_that_does_no_harm_is_refused_in_full_and_unseen_in_a_quick_check():
    assert judged(LOOKS_FURTHER, "full").outcome == "out_of_bounds"
    quick = judged(LOOKS_FURTHER, "quick")
    assert quick.outcome == "passed"
    assert any(s.startswith("Accesses outside of arrays that did no harm, ") for s in quick.not_checked)


def test_beside_a_gpu_checked_mode_answers_first():
    judge, draws, _, _ = prepared(TWICE)
    runs = ToolRuns(judge)
    runs.check_or_memcheck(draws, draws[0])
    runs.finish()
    assert {c.name: c.status for c in judge.checks.values() if "mode" in c.name} == dict.fromkeys(
        (f"checked mode {tool}" for tool in TOOLS), "passed"
    )
    assert not any(name.startswith("compute-sanitizer") for name in judge.checks)
    judge.close()


def test_beside_a_gpu_a_finding_ends_the_judging():
    judge, draws, _, _ = prepared(LOOKS_FURTHER)
    runs = ToolRuns(judge)
    runs.check_or_memcheck(draws, draws[0])
    with pytest.raises(Verdict) as caught:
        runs.finish()
    assert caught.value.finding.outcome == "out_of_bounds"
    judge.close()


def test_what_checked_mode_does_not_know_is_left_to_memcheck(monkeypatch):
    judge, draws, _, _ = prepared(TWICE)
    monkeypatch.setattr("llmkernel.devices.cuda.sanitizer.find_sanitizer", lambda: None)
    judge.source = UNKNOWN
    runs = ToolRuns(judge)
    runs.check_or_memcheck(draws, draws[0])
    runs.finish()
    assert judge.checks["compute-sanitizer memcheck"].status == "not_run"
    (sentence,) = not_looked_for(judge.checks.values())
    assert "checked mode: " in sentence
    assert "compute-sanitizer: compute-sanitizer is not installed" in sentence
    judge.close()


def test_tools_that_nobody_waits_for_end():
    judge, draws, _, _ = prepared(TWICE)
    runs = ToolRuns(judge)
    runs.check_or_memcheck(draws, draws[0])
    judge.close()
    again = judged(TWICE, "quick")
    assert again.outcome == "passed", again.headline


def test_a_quick_check_runs_what_is_asked_for_and_nothing_else():
    judge, _, limits, quick = prepared(TWICE)
    begin_tools(judge, ("racecheck",), quick, quick, limits, is_full=False).finish()
    assert [name for name in judge.checks if "mode" in name] == ["checked mode racecheck"]
    judge.close()


def test_what_no_tool_looked_for_is_said_once():
    passed = [CheckResult(f"checked mode {tool}", "passed", "nothing found") for tool in TOOLS]
    assert not_looked_for(passed) == []
    assert not_looked_for(passed[:2] + passed[3:]) == [
        "Races that ended well: the tools that see them did not run (a full verification ends with them)."
    ]


@pytest.mark.parametrize("is_full", [False, True])
def test_on_a_gpu_without_compute_sanitizer_checked_mode_answers_for_what_is_asked(monkeypatch, is_full):
    judge, _, limits, quick = prepared(TWICE)
    monkeypatch.setattr("llmkernel.devices.cuda.sanitizer.find_sanitizer", lambda: None)
    judge.device = "cuda"
    begin_tools(judge, ("racecheck",), quick, quick, limits, is_full=is_full).finish()
    judge.device = "cpu"
    found = [name for name in judge.checks if "mode" in name]
    assert found == ([f"checked mode {tool}" for tool in TOOLS] if is_full else ["checked mode racecheck"])
    judge.close()


def test_what_is_asked_for_does_not_replace_what_a_full_verification_runs():
    x = np.ones(300, np.float32)
    report = evaluate(TWICE, lambda x: 2 * x, [x], device="cpu", level="full", checks=["racecheck"])
    assert {f"checked mode {tool}" for tool in TOOLS} <= {c.name for c in report.checks}
