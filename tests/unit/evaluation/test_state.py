"""Which candidates can remember, and that those which do are seen on draws that hardly differ."""

import numpy as np
import pytest

from llmkernel import evaluate
from llmkernel.evaluation.state import keeps_state
from tests.unit.evaluation.kernels import AXPY, axpy, axpy_inputs


@pytest.mark.parametrize(
    ("source", "is_kept"),
    [
        ("__device__ float kept[4];", True),
        ("__device__ int n = 0;", True),
        ("__device__ unsigned done;", True),
        ("__managed__ int n;", True),
        ("__device__ __align__(16) float kept[4];", True),
        ("namespace a { __device__ int n; }", True),
        ("__device__ void f() { static int n; n += 1; }", True),
        ("template <typename T> __device__ T kept;", True),
        ("__device__ float f(float x) { return x; }", False),
        ("__device__ __forceinline__ float f(int n = 0) { return n; }", False),
        ("__device__ const float table[2] = {1, 2};", False),
        ("static __device__ constexpr int n = 3;", False),
        ("const __device__ int n = 3;", False),
        ("__constant__ float table[4];", False),
        ("__device__ void f() { static __shared__ float x[4]; }", False),
        ("// __device__ int n;\n__global__ void f(float* x) { float kept[4]; }", False),
    ],
)
def test_variables_that_outlive_a_launch(source, is_kept):
    assert keeps_state(source) is is_kept


def test_a_result_kept_under_a_few_values_is_seen():
    memo = AXPY.replace(
        "__global__", "__device__ float kept[1 << 17];\n__device__ float keys[1 << 17];\n__global__"
    )
    memo = memo.replace(
        "z[i] = a * x[i] + y[i];",
        "if (keys[i] != x[0] + a) { keys[i] = x[0] + a; kept[i] = a * x[i] + y[i]; }\n        z[i] = kept[i];",
    )
    report = evaluate(memo, axpy, axpy_inputs(), device="cpu", level="full")
    assert report.outcome == "wrong_value", report.headline


def test_the_report_says_how_state_was_looked_for():
    report = evaluate(AXPY, axpy, axpy_inputs(), device="cpu", level="full")
    assert {c.name: c.status for c in report.checks}["no state between calls"] == "not_applicable"
    source = AXPY.replace("__global__", "__device__ int launches;\n__global__").replace(
        "z[i] = a", "if (i == 0) launches += 1;\n        z[i] = a"
    )
    report = evaluate(source, axpy, axpy_inputs(), device="cpu", level="full")
    assert report.outcome == "passed", report.headline
    assert {c.name: c.status for c in report.checks}["no state between calls"] == "passed"


def test_an_epsilon_is_varied_by_orders_of_magnitude():
    source = """
//! inverse(x: float32[N], eps: float32) -> y: float32[N]
//! inverse<<<ceil_div(N, 64), 64>>>(x, eps, y, N)
__global__ void inverse(const float* x, float eps, float* y, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) y[i] = 1.0f / (fabsf(x[i]) + 1.0f + EPS);
}
"""
    x = np.random.default_rng(0).standard_normal(300).astype(np.float32)
    right, wrong = (
        evaluate(source.replace("EPS", e), lambda x, eps: 1 / (np.abs(x) + 1 + eps), [x, 1e-7], device="cpu", level="full")
        for e in ("eps", "1e-7f")
    )  # fmt: skip
    assert right.outcome == "passed", right.headline
    assert wrong.outcome in ("wrong_value", "precision_downgraded")


def test_an_axis_beyond_sixteen_bits_is_tried_and_may_be_beyond_a_launch():
    narrow = AXPY.replace("int i =", "unsigned short i =")
    assert evaluate(narrow, axpy, axpy_inputs(), device="cpu", level="full").outcome != "passed"
    tall = """
//! twice(x: float32[M, N]) -> y: float32[M, N]
//! twice<<<(ceil_div(N, 32), M), 32>>>(x, y, N)
__global__ void twice(const float* x, float* y, int N) {
    int i = blockIdx.x * 32 + threadIdx.x;
    if (i < N) y[blockIdx.y * N + i] = 2 * x[blockIdx.y * N + i];
}
"""
    x = np.ones((5, 40), np.float32)
    report = evaluate(tall, lambda x: 2 * x, [x], device="cpu", level="full")
    assert report.outcome == "passed", report.headline
    assert any("beyond the launch limits" in n for n in report.not_checked)
