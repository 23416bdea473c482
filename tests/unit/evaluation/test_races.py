"""What is said of races before anything runs, and of int products at sizes that are not run; GPUs: tests/gpu."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from llmkernel.candidate.delays import ORDERS, delayed_source, shares_memory
from llmkernel.evaluation.evaluate import evaluate

ROOT = Path(__file__).parents[3]
GALLERY = ROOT / "tests/rogues"
HONEST = sorted(p for p in GALLERY.glob("honest_*.cu") if "__syncthreads" in p.read_text())
ROWS = """//! row_sum(x: float32[M, N]) -> y: float32[M]
//! row_sum<<<M, 1>>>(x, y, N)
__global__ void row_sum(const float* x, float* y, int N) {{
    __shared__ float part[32];
    float sum = 0.0f;
    for (int i = 0; i < N; ++i) sum += x[{}];
    part[threadIdx.x] = sum;
    y[blockIdx.x] = part[0];
}}
"""
X = np.random.default_rng(0).standard_normal((7, 40)).astype(np.float32)


def judge(source):
    return evaluate(source, lambda x: x.sum(axis=-1), [X], device="cpu", level="quick")


def test_a_suspicion_is_a_warning_and_no_more():
    report = judge(ROWS.format("(long long)blockIdx.x * N + i"))
    assert report.outcome == "passed", report.headline
    (barriers,) = [c for c in report.checks if c.name == "barriers"]
    assert barriers.status == "warning"
    assert barriers.evidence == {"lines": [8]}
    assert barriers.summary in report.warnings
    assert "line 7" in barriers.summary


def test_a_failure_is_told_with_the_suspicion():
    report = judge(ROWS.format("(long long)blockIdx.x * N + i").replace("= sum;", "= 2 * sum;"))
    assert not report.is_passed
    assert "no barrier between" in report.feedback


def test_products_that_overflow_beyond_the_verified_sizes_are_listed():
    risky = judge(ROWS.format("(int)blockIdx.x * N + i"))
    assert risky.outcome == "passed"
    (note,) = [n for n in risky.not_checked if "int and overflows" in n]
    assert "line 6" in note
    assert "(int)blockIdx.x * N" in note
    assert "M=" in note
    safe = judge(ROWS.format("(long long)blockIdx.x * N + i"))
    assert not [n for n in safe.not_checked if "overflows" in n]
    bounded = ROWS.format("(int)blockIdx.x * N + i").replace(
        "//! row_sum<<<", "//! require M * N < 2147483648\n//! row_sum<<<"
    )
    assert not [n for n in judge(bounded).not_checked if "overflows" in n]


@pytest.mark.parametrize("order", ORDERS)
def test_sleeps_leave_every_line_where_it_was(order):
    for path in HONEST:
        source = path.read_text()
        prologue, _, rest = delayed_source(source, order).partition("#line 1\n")
        assert "__nanosleep" in prologue
        assert rest.count("\n") == source.count("\n")
        assert rest.replace(" llmkernel_hold_block(); ", "") == source
        assert rest.count("llmkernel_hold_block") == source.count("__global__")


def test_kernels_with_sleeps_compile():
    from llmkernel.candidate.candidate import parse_candidate
    from llmkernel.devices.cuda import toolchain
    from llmkernel.devices.cuda.nvrtc import check_with_nvrtc

    if toolchain.nvrtc_version() is None:
        pytest.skip("NVRTC is not installed")
    for path in (*HONEST[:2], ROOT / "llmkernel/library/histogram.cu", GALLERY / "honest_row_sum_groups.cu"):
        source = path.read_text()
        candidate = parse_candidate(source)
        types = {name: choices[0] for name, choices in candidate.signature.type_variables}
        seen = check_with_nvrtc(
            delayed_source(source, "reverse"), list(candidate.name_expressions(types)), "sm_90a"
        )
        assert seen.is_compiled, seen.log


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("honest_axpy", False),
        ("honest_axpy_vectorised", False),
        ("honest_softmax_warp", False),
        ("honest_softmax_block", True),
        ("honest_total_last_block", True),
        ("honest_total_atomics", True),
        ("fence_without_counter", True),
        ("first_block_adds", True),
        ("blocks_depend_on_each_other", True),
    ],
)
def test_only_kernels_whose_threads_see_each_other_are_held_back(name, expected):
    assert shares_memory((GALLERY / f"{name}.cu").read_text()) == expected
