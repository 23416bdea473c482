"""Honest kernels that a stricter or a looser rule would judge wrong, each with the mistake that must still be seen."""

import numpy as np
import pytest

from llmkernel import evaluate
from llmkernel.evaluation.tolerance import special_mismatch
from llmkernel.problem.problem import Problem, ReferenceRun


def test_a_sum_that_overflows_may_meet_infinities_of_both_signs():
    got = np.array([np.nan, np.inf, -np.inf, 1.0], np.float32)
    oracle = np.full(4, 1e60)
    assert special_mismatch(got, oracle, None, is_sum=True).tolist() == [3]
    assert special_mismatch(got, oracle, None).tolist() == [0, 2, 3]
    assert special_mismatch(got, np.full(4, np.inf), None, is_sum=True).tolist() == [0, 2, 3]


def test_a_complex_product_that_overflows_has_no_certain_part():
    oracle = np.array([0 + 1e60j, 1 + 1j])
    assert special_mismatch(np.array([complex(np.nan, np.inf), 1 + 1j], np.complex64), oracle, None).size == 0
    assert special_mismatch(np.array([1, complex(np.nan, 1)], np.complex64), oracle, None).tolist() == [0, 1]


VARIANCE = """
//! variance(x: float32[M, N]) -> y: float32[M]
//! variance<<<ceil_div(M, 32), 32>>>(x, y, M, N)
__global__ void variance(const float* x, float* y, int M, int N) {
    int row = blockIdx.x * 32 + threadIdx.x;
    if (row >= M) return;
    float mean = 0.0f, sum = 0.0f;
    for (int i = 0; i < N; ++i) mean += x[row * N + i];
    mean /= N;
    for (int i = 0; i < N; ++i) sum += (x[row * N + i] - mean) * (x[row * N + i] - mean);
    y[row] = sum / N;
}
"""


@pytest.mark.parametrize(
    ("old", "new", "outcome"),
    [("", "", "passed"), ("y[row] = sum / N;", "y[row] = sum / N + 1e-9f;", "wrong_value")],
    ids=["two passes", "a small constant too much"],
)
def test_the_variance_of_equal_values_is_as_exact_as_their_mean(old, new, outcome):
    x = np.random.default_rng(0).standard_normal((9, 48)).astype(np.float32)
    source = VARIANCE.replace(old, new) if old else VARIANCE
    report = evaluate(source, lambda x: x.var(axis=-1), [x], device="cpu", level="full")
    assert report.outcome == outcome, report.headline


TOTAL = """
//! total(x: int64[N]) -> y: int64 = 0
//! total<<<ceil_div(N, 64), 64>>>(x, y, N)
__global__ void total(const long long* x, long long* y, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) atomicAdd((unsigned long long*)y, (unsigned long long)x[i]);
}
"""


def test_one_exact_number_is_not_its_own_constant():
    x = np.random.default_rng(0).integers(-(2**40), 2**40, 300)
    assert evaluate(TOTAL, np.sum, [x], device="cpu", level="full").outcome == "passed"


def test_one_number_that_never_changes_is_inconclusive():
    x = np.arange(300)
    three = TOTAL.replace(
        "if (i < N) atomicAdd((unsigned long long*)y, (unsigned long long)x[i]);", "if (i == 0) *y = 3;"
    )
    three = three.replace("ceil_div(N, 64)", "1")
    report = evaluate(three, lambda x: np.int64(3), [x], device="cpu", level="full")
    assert report.outcome == "inconclusive"
    assert "hardly depends" in report.headline


MATMUL_HALF = """
//! matmul(a: float16[M, K], b: float16[K, N]) -> c: float32[M, N]
//! matmul<<<(ceil_div(N, 8), ceil_div(M, 8)), (8, 8)>>>(a, b, c, M, K, N)
#include <cuda_fp16.h>
__global__ void matmul(const __half* a, const __half* b, float* c, int M, int K, int N) {
    int j = blockIdx.x * 8 + threadIdx.x, i = blockIdx.y * 8 + threadIdx.y;
    if (i >= M || j >= N) return;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k) sum = KEEP(sum + __half2float(a[i * K + k]) * __half2float(b[k * N + j]));
    c[i * N + j] = sum;
}
"""


@pytest.mark.parametrize(
    ("keep", "outcome"),
    [("", "passed"), ("__half2float(__float2half", "precision_downgraded")],
    ids=["float32", "half"],
)
def test_half_inputs_do_not_forgive_half_accumulation_under_a_float32_contract(keep, outcome):
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(s).astype(np.float16) for s in ((20, 24), (24, 17)))
    source = MATMUL_HALF.replace("KEEP(", keep + "(" if keep else "(")
    source = source.replace("+ j]));", "+ j])));") if keep else source

    def reference(a, b):
        return a.astype(np.float32) @ b.astype(np.float32) if a.dtype == np.float16 else a @ b

    report = evaluate(source, reference, [a, b], device="cpu", level="full")
    assert report.outcome == outcome, report.headline


DIVIDED = """
//! divided(x: float32[M, N]) -> y: float32[M, N]
//! divided<<<ceil_div(M, 32), 32>>>(x, y, M, N)
__global__ void divided(const float* x, float* y, int M, int N) {
    int row = blockIdx.x * 32 + threadIdx.x;
    if (row >= M) return;
    float largest = 0.0f;
    for (int i = 0; i < N; ++i) largest = fmaxf(largest, fabsf(x[row * N + i]));
    for (int i = 0; i < N; ++i) y[row * N + i] = x[row * N + i] / (largest + 1.0f);
}
"""


def divided(x):
    with np.errstate(invalid="ignore"):
        return x / (np.abs(x).max(-1, keepdims=True) + 1)


def divided_with_nan_rows(x):
    return np.where(np.isinf(x).any(-1, keepdims=True), np.nan, divided(x))


@pytest.mark.parametrize(("second", "outcome"), [(None, "non_finite"), (divided, "passed")])
def test_either_of_two_implementations_of_the_reference_is_right_about_special_values(
    monkeypatch, second, outcome
):
    def run(problem, inputs):
        if second is None:
            return None
        wide = [v.astype(np.float64) for v in inputs]
        return ReferenceRun([second(*wide)], list(inputs), (), returns_tuple=False)

    monkeypatch.setattr(Problem, "run_reference_on_host", run)
    source = DIVIDED.replace("fmaxf(largest, fabsf(x[row * N + i]))", NAN_TOO)
    x = np.random.default_rng(0).standard_normal((9, 48)).astype(np.float32)
    report = evaluate(source, divided_with_nan_rows, [x], device="cpu", level="full")
    assert report.outcome == outcome, report.headline


NAN_TOO = "(largest != largest || fabsf(x[row * N + i]) <= largest ? largest : fabsf(x[row * N + i]))"
