"""Memory that is handed out again holds old results, and nothing may depend on that."""

import numpy as np
import pytest

from llmkernel import evaluate
from tests.unit.evaluation.kernels import AXPY, axpy, axpy_inputs

BEND = """
//! bend(x: float32[N]) -> y: float32[N]
//! scratch seen: int32[1], kept: float32[N]
//! look<<<1, 1>>>(x, y, seen, N)
//! bend<<<ceil_div(N, 64), 64>>>(x, y, seen, kept, N)
__device__ float f(float v) { return v * v * 0.5f + v; }
__global__ void look(const float* x, const float* y, int* seen, int N) { LOOK }
__global__ void bend(const float* x, float* y, const int* seen, float* kept, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i >= N) return;
    BEND
}
"""
OUTPUT_LOOKS_RIGHT = BEND.replace("LOOK", "seen[0] = y[0] == f(x[0]) && y[N - 1] == f(x[N - 1]);").replace(
    "BEND", "if (!seen[0]) y[i] = f(x[i]);"
)
KEPT_IN_SCRATCH = BEND.replace(
    "LOOK", "seen[0] = seen[0] == __float_as_int(x[0]) ? -1 : __float_as_int(x[0]);"
).replace("BEND", "if (seen[0] != -1) kept[i] = f(x[i]);\n    y[i] = kept[i];")


def bend(x):
    return x * x * np.float32(0.5) + x


@pytest.mark.parametrize("source", [OUTPUT_LOOKS_RIGHT, KEPT_IN_SCRATCH], ids=["output", "scratch"])
def test_work_that_is_skipped_over_old_results_is_seen(source):
    x = np.random.default_rng(0).standard_normal(300).astype(np.float32)
    report = evaluate(source, bend, [x], device="cpu", level="full")
    assert report.outcome == "uninitialised_read", report.headline
    assert "what memory held before" in report.headline


def test_what_is_wrong_by_itself_is_not_blamed_on_memory():
    # One element in some thousands: the draw that differs in a few elements may be the first that has it.
    source = BEND.replace("LOOK", "").replace("BEND", "y[i] = fabsf(x[i] - 0.001f) < 1e-3f ? 5.0f : f(x[i]);")
    x = np.random.default_rng(0).standard_normal(300).astype(np.float32) + 8
    outcomes = {evaluate(source, bend, [x], device="cpu", level="full").outcome for _ in range(4)}
    assert outcomes <= {"wrong_value", "passed"}


def test_a_kernel_that_writes_everything_is_told_so():
    report = evaluate(AXPY, axpy, axpy_inputs(), device="cpu", level="full")
    assert report.outcome == "passed", report.headline
    assert {c.name: c.status for c in report.checks}["no old results"] == "passed"
