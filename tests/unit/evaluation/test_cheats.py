"""Kernels that look right: each was published by somebody as a success (tests/test_catalogue.py names the cases)."""

from __future__ import annotations

import numpy as np
import pytest

from llmkernel import evaluate
from llmkernel.evaluation.report import Measurement
from llmkernel.evaluation.timing import claim
from llmkernel.evaluation.worker.client import Worker
from tests.unit.evaluation.kernels import AXPY, ROW_SUM, axpy, axpy_inputs, row_sum, row_sum_inputs


def judge(source, reference, inputs, **options):
    report = evaluate(source, reference, inputs, device="cpu", level="full", **options)
    assert report.timing is None or report.outcome == "passed"
    return report


def normal(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def a_row(signature, body, *, block=32):
    """A candidate with one thread a row of `x`, (M, N)."""
    outputs = [w.split(":")[0].strip("( ") for w in signature.split("->")[1].split(", ") if ":" in w]
    inputs = [w.split(":")[0].strip() for w in signature.split("(", 1)[1].split(")")[0].split("], ")]
    parameters = [f"const float* {n}" for n in inputs] + [f"float* {n}" for n in outputs]
    return (
        "#include <cuda_fp16.h>\n"
        f"//! {signature}\n//! run<<<ceil_div(M, {block}), {block}>>>({', '.join((*inputs, *outputs))}, M, N)\n"
        f"__global__ void run({', '.join(parameters)}, int M, int N) {{\n"
        f"    int row = blockIdx.x * {block} + threadIdx.x;\n    if (row >= M) return;\n"
        f"    x += (long long)row * N;\n    {body}\n}}\n"
    )


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


SOFTMAX = a_row(
    "softmax(x: float32[M, N]) -> y: float32[M, N]",
    "y += (long long)row * N; float m = -INFINITY, s = 0;\n"
    "    for (int i = 0; i < N; ++i) m = fmaxf(m, x[i]);\n"
    "    for (int i = 0; i < N; ++i) s += expf(x[i] - m);\n"
    "    for (int i = 0; i < N; ++i) y[i] = expf(x[i] - m) / s;",
)


def test_the_softmax_that_the_cheats_are_made_of_is_right():
    report = judge(SOFTMAX, softmax, [normal(9, 40)])
    assert report.outcome == "passed", report.headline


def test_zeros_are_no_mean_of_normal_numbers():
    report = judge(
        a_row("mean(x: float32[M, N]) -> y: float32[M]", "y[row] = 0.0f;"),
        lambda x: x.mean(-1),
        [normal(9, 4096)],
    )
    assert report.outcome == "wrong_value"


def test_a_softmax_without_the_maximum_is_seen_with_its_first_bad_element():
    report = judge(SOFTMAX.replace("m = fmaxf(m, x[i])", "m = 0"), softmax, [normal(9, 40)])
    assert report.outcome == "non_finite"
    assert "got nan" in report.headline


def test_rows_that_are_masked_altogether_follow_the_reference():
    x = normal(9, 40)
    x[4] = -np.inf
    assert judge(SOFTMAX, softmax, [x]).outcome == "passed"
    report = judge(
        SOFTMAX.replace("/ s;", "/ fmaxf(s, 1e-30f);").replace(
            "x[i] - m", "fmaxf(x[i], -9e9f) - fmaxf(m, -9e9f)"
        ),
        softmax,
        [x],
    )
    assert report.outcome == "non_finite"
    assert "[4, 0]" in report.headline


def rms_norm(x):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + np.float32(1e-6))


def test_a_sum_of_squares_in_half_precision_overflows():
    source = a_row(
        "rms_norm(x: float32[M, N]) -> y: float32[M, N]",
        "y += (long long)row * N; SUM s = 0;\n"
        "    for (int i = 0; i < N; ++i) s = s + (SUM)x[i] * (SUM)x[i];\n"
        "    for (int i = 0; i < N; ++i) y[i] = x[i] / sqrtf((float)s / N + 1e-6f);",
    )
    assert judge(source.replace("SUM", "float"), rms_norm, [normal(9, 40)]).outcome == "passed"
    half = judge(source.replace("SUM", "half"), rms_norm, [normal(9, 40)])
    assert half.outcome in ("precision_downgraded", "wrong_value", "non_finite")


PRODUCT = """//! product(a: float32[M, K], b: float32[K, N]) -> c: float32[M, N]
//! product<<<(ceil_div(N, 8), ceil_div(M, 8)), (8, 8)>>>(a, b, c, M, N, K)
__global__ void product(const float* a, const float* b, float* c, int M, int N, int K) {
    int col = blockIdx.x * 8 + threadIdx.x, row = blockIdx.y * 8 + threadIdx.y;
    float s = 0;
    if (row >= M || col >= N) return;
    for (int k = 0; k < K; ++k) s += a[row * K + k] * b[k * N + col];
    c[row * N + col] = s;
}
"""


@pytest.mark.parametrize(
    ("old", "new", "outcome"),
    [
        ("", "", "passed"),
        ("k < K", "k < K / 8 * 8", "wrong_value"),
        ("row >= M || col >= N", "row >= M || col >= N / 8 * 8", "not_written"),
    ],
    ids=["right", "K in tiles only", "N in tiles only"],
)
def test_a_product_that_is_right_at_multiples_of_its_tile_only(old, new, outcome):
    report = judge(
        PRODUCT.replace(old, new) if old else PRODUCT, np.matmul, [normal(64, 64), normal(64, 128)]
    )
    assert report.outcome == outcome, report.headline
    assert report.workloads[0]["is_users_own"]


def test_wide_loads_that_only_the_size_allows_meet_an_address_that_forbids_them():
    source = (
        "//! copy(x: float32[N]) -> y: float32[N]\n//! copy<<<ceil_div(N, 64), 64>>>(x, y, N)\n"
        "__global__ void copy(const float* x, float* y, int N) {\n"
        "    int i = blockIdx.x * 64 + threadIdx.x;\n"
        "    if (N % 4 == 0) { if (i < N / 4) ((float4*)y)[i] = ((const float4*)x)[i]; }\n"
        "    else if (i < N) y[i] = x[i];\n}\n"
    )
    report = judge(source, np.copy, [normal(1000)])
    assert report.outcome == "crashed"
    assert "misaligned" in report.headline


def test_a_result_kept_from_an_earlier_call_is_seen():
    source = AXPY.replace(
        "__global__", "__device__ float memo[8192];\n__device__ int kept;\n__global__"
    ).replace(
        "z[i] = a * x[i] + y[i];",
        "if (kept != N) memo[i] = a * x[i] + y[i];\n        z[i] = memo[i];\n        if (i == N - 1) kept = N;",
    )
    assert judge(source, axpy, axpy_inputs()).outcome != "passed"


def test_what_was_not_tried_is_in_every_report():
    report = judge(ROW_SUM, row_sum, row_sum_inputs())
    assert report.outcome == "passed"
    sizes = [w["sizes"] for w in report.workloads]
    largest = max(int(np.prod(list(s.values()))) for s in sizes)
    assert f"Arrays of more than {largest} elements: no larger one was run." in report.not_checked
    assert any("Nothing ran on a GPU" in n for n in report.not_checked)


def baseline(ratio, low, high):
    return Measurement("torch.compile", 1.0, 0.9, 1.1, 50, ratio=ratio, ratio_low=low, ratio_high=high)


@pytest.mark.parametrize(
    ("best", "suspect", "said"),
    [
        (baseline(150.0, 149.0, 151.0), True, "suspect, not a speed-up"),
        (baseline(2.0, 1.9, 2.1), False, "2.00 × as fast"),
        (baseline(1.02, 1.01, 1.03), False, "On a par"),
        (baseline(1.4, 0.8, 2.0), False, "On a par"),
        (baseline(0.3, 0.29, 0.31), False, "Slower"),
        (None, False, ""),
    ],
)
def test_a_speed_up_is_only_said_where_it_was_measured(best, suspect, said):
    text = claim(best, suspect=suspect)
    assert said in text
    assert suspect <= ("×" not in text)


def test_a_kernel_that_is_right_for_its_first_launches_is_not_accepted():
    source = AXPY.replace("__global__", "__device__ int launches;\n__global__").replace(
        "z[i] = a * x[i] + y[i];",
        "z[i] = (launches < 3 ? a : 0.0f) * x[i] + y[i];\n        __threadfence();\n"
        "        if (i == N - 1) atomicAdd(&launches, 1);",
    )
    assert judge(source, axpy, axpy_inputs()).outcome != "passed"


def test_expected_values_never_reach_the_process_of_a_candidate(monkeypatch):
    sent = []
    request = Worker.request

    def spy(self, header, blobs=(), *, timeout):
        sent.extend(bytes(b) for b in blobs)
        return request(self, header, blobs, timeout=timeout)

    monkeypatch.setattr(Worker, "request", spy)
    inputs = axpy_inputs()
    report = evaluate(AXPY, axpy, inputs, device="cpu", level="full", with_timing=True)
    assert report.outcome == "passed"
    assert inputs[1].tobytes() in sent
    assert not any(axpy(*inputs).tobytes() in blob for blob in sent)
