"""A profile's figures, and two kernels timed in turn, on the cpu device."""

import numpy as np
import pytest

from llmkernel.candidate.header import parse_header
from llmkernel.devices.cuda.profile import STALLS, KernelCounters, NcuRun
from llmkernel.errors import UsageError
from llmkernel.evaluation.comparing import compare_sources, require_same_signature
from llmkernel.evaluation.profile_advice import stall_words
from llmkernel.evaluation.profiling import (
    of_counters,
    of_measurements,
    of_resources,
    profile_problem,
    short_name,
)
from llmkernel.problem.problem import make_problem
from llmkernel.problem.reference import make_reference
from tests.unit.evaluation.kernels import AXPY, axpy, axpy_inputs

RUN = NcuRun(
    (
        KernelCounters(
            "void split<float, 4>(const float *, int)",
            1,
            3000.0,
            91.0,
            12.0,
            48.0,
            3.0,
            (("barrier", 3.0), ("wait", 1.0)),
        ),
        KernelCounters("join(float *)", 2, 1000.0),
    )
)


@pytest.fixture(scope="module")
def problem():
    return make_problem(*make_reference(axpy, axpy_inputs()), intent="a times x plus y")


def test_five_figures_with_what_they_mean_for_the_longest_kernel():
    found = of_counters(RUN)
    values = {f.name: f.value for f in found.figures}
    assert found.kernel == "split<float, 4>"
    assert list(values) == [
        "DRAM throughput",
        "compute throughput",
        "achieved occupancy",
        "L2 hit rate",
        "what warps wait for",
    ]
    assert values["DRAM throughput"].startswith("91 %")
    assert "75 % of the waiting" in values["what warps wait for"]
    assert "only fewer bytes help" in found.figures[0].meaning
    assert any("75 % of the time" in n and "`join` 25 %" in n for n in found.notes)
    assert all(f.meaning in found.feedback() for f in found.figures)


def test_a_counter_that_is_missing_is_left_out():
    found = of_counters(NcuRun((KernelCounters("k()", 1, 1.0, compute_percent=80.0),)))
    assert [f.name for f in found.figures] == ["compute throughput"]


def test_our_own_counters_say_what_was_reached():
    resources = {"k": {"registers": 168, "spill_bytes": 64, "occupancy": 0.25}, "tiny": {"registers": 8}}
    found = of_measurements(resources, 0.5, 10**9, 4e12, notes=("No counters: no permission.",))
    values = {f.name: (f.value, f.meaning) for f in found.figures}
    assert found.kernel == "k"
    assert values["time"][0] == "500 µs"
    assert values["achieved bandwidth"][0] == "2000 GB/s, 50 % of a copy's 4000 GB/s"
    assert values["occupancy"][0].startswith("25 %")
    assert "__launch_bounds__" in values["registers"][1]
    assert "through memory" in values["spills"][1]
    assert "No counters" in found.feedback()


def test_without_a_gpu_the_compiler_is_asked_and_no_time_is_given(problem):
    found = profile_problem(problem, AXPY, device="cpu")
    assert {f.name for f in found.figures} == {"registers", "spills"}
    assert any("nothing ran on a GPU" in n for n in found.notes)
    assert any("sm_90a" in n for n in found.notes)
    bare = of_resources({"axpy": {"registers": None}}, "host")
    assert not bare.figures
    assert any("NVRTC is not installed" in n for n in bare.notes)


def test_every_reason_to_wait_has_its_words():
    assert all(stall_words(s)[0] != s.replace("_", " ") for s in STALLS)
    assert stall_words("something_new")[0] == "something new"


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        ("void f<g<float (*)(int)>, 3>(int)", "f<g<float (*)(int)>, 3>"),
        ("twice(float const*)", "twice"),
        ("f", "f"),
    ],
)
def test_a_kernels_short_name(kernel, name):
    assert short_name(kernel) == name


def signature(text):
    return parse_header(f"//! {text}\n").signature


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("f(x: float32[M, N]) -> y: float32[M]", "g(a: float32[R, C]) -> b: float32[R]", True),
        ("f(x: float32[M, N]) -> y: float32[M]", "f(x: float32[M, N]) -> y: float32[N]", False),
        ("f(x: float32[N]) -> y: float32[N]", "f(x: float16[N]) -> y: float16[N]", False),
        ("f(x: float32[N]) -> y: float32[N]", "f(x: float32[N], a: int32) -> y: float32[N]", False),
        (
            "f(x: float32[N], y: float32[N]) -> z: float32[N]",
            "f(x: float32[N], y: float32[M]) -> z: float32[N]",
            False,
        ),
        ("f(x: float32[N]) -> y: float32[N]", "f(inout x: float32[N]) -> y: float32[N]", False),
        ("f(x: float32[N]) -> y: float32[2 * N]", "f(x: float32[N]) -> y: float32[3 * N]", False),
    ],
)
def test_kernels_for_different_problems_are_not_compared(one, other, is_same):
    if is_same:
        require_same_signature(signature(one), signature(other), ("a", "b"))
        return
    with pytest.raises(UsageError, match="different problems") as caught:
        require_same_signature(signature(one), signature(other), ("a", "b"))
    assert caught.value.next_step


def test_two_right_kernels_are_timed_in_turn(problem):
    stages = []
    found = compare_sources(
        problem, (AXPY, AXPY.replace("128", "64")), ("wide", "narrow"), device="cpu", on_stage=stages.append
    )
    assert stages == ["wide", "narrow", "timing"]
    assert all(r.is_passed for r in found.reports)
    assert [r.label for r in found.rows] == ["wide", "narrow"]
    assert found.rows[0].samples == found.rows[1].samples >= 10
    # Emulation makes no claim.
    assert found.is_emulation
    assert found.rows[1].ratio is None
    assert "says nothing" in found.claim


def test_a_wrong_kernel_is_not_compared(problem):
    wrong = AXPY.replace("+ y[i]", "- y[i]")
    with pytest.raises(UsageError, match="fast is not compared: it ended `wrong_value`"):
        compare_sources(problem, (AXPY, wrong), ("slow", "fast"), device="cpu")


def test_empty_arrays_leave_nothing_to_time():
    x = np.zeros(0, np.float32)
    problem = make_problem(*make_reference(axpy, [2.0, x, x]), intent="a times x plus y")
    with pytest.raises(UsageError, match="nothing to time"):
        compare_sources(problem, (AXPY, AXPY), ("one", "two"), device="cpu")
