"""Reports as the evaluator makes them, one for each kind of ending."""

from __future__ import annotations

from dataclasses import replace

from llmkernel.evaluation.report import CheckResult, Measurement, Report, Timing
from llmkernel.providers.base import Reply, Usage
from llmkernel.synthesis.events import Attempt

SIGNATURE = "softmax(x: T[M, N]) -> y: T[M, N]    where T in {float32, float16, bfloat16}"
SOURCE = """//! softmax(x: float32[M, N]) -> y: float32[M, N]
//! softmax_rows<<<M, 256>>>(x, y, N)

/* One block a row:
   the row stays in registers. */
#include "llmkernel.cuh"

template <int THREADS>
__device__ float block_max(float value) {
    __shared__ float partial[THREADS / 32];
    for (int lane = 16; lane > 0; lane >>= 1)  // within a warp
        value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, lane));
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
    __syncthreads();
    return partial[0];
}

__global__ void softmax_rows(const float* __restrict__ x, float* __restrict__ y, int N) {
    const float* row = x + (long long)blockIdx.x * N;
    float top = -INFINITY;
    for (int i = threadIdx.x; i < N; i += blockDim.x) top = fmaxf(top, row[i]);
    top = block_max<256>(top);
    if (N < 0) printf("never %d\\n", N);
    y[(long long)blockIdx.x * N + threadIdx.x] = expf(row[threadIdx.x] - top) / 2.0f;
}
"""
BROKEN_SOURCE = SOURCE.replace("expf(", "expff(")
H200 = {
    "device": "cuda",
    "name": "NVIDIA H200",
    "arch": "sm_90a",
    "num_sms": 132,
    "memory_bytes": 150_000_000_000,
    "versions": {"driver": "580.65", "nvrtc": "13.0.48", "cupy": "14.2.0", "torch": "2.11.0"},
}
CPU = {"device": "cpu", "name": "host", "arch": "host", "num_sms": 8, "versions": {"compiler": "zig 0.15.2"}}
EPS = 2.0**-23
NOT_CHECKED = (
    "Sizes beyond 2^31 elements: 8.6 GB are needed, 4.1 GB are free.",
    "Sizes that the reference refuses: N = 0.",
    "float16 and bfloat16: the example has float32.",
)
CHECKS = (
    CheckResult(
        "values", "passed", "38 draws over 14 sizes and 9 input families, against the reference in float64."
    ),
    CheckResult("guard bands", "passed", "4096 bytes before and after each of 2 buffers, on every draw."),
    CheckResult("inputs unchanged", "passed", "x compared bit for bit after every draw."),
    CheckResult("determinism", "passed", "3 draws, 5 repeats each, bitwise equal."),
    CheckResult("racecheck", "not_run", "compute-sanitizer is not installed."),
    CheckResult(
        "misaligned views", "warning", "x shifted by one element is refused by name.", {"argument": "x"}
    ),
    CheckResult("integer overflow", "not_applicable", "No integer product depends on the sizes."),
    CheckResult(
        "trivial controls", "passed", "Zeros, a constant, a copy of x and another draw’s output all fail."
    ),
)
WORKLOADS = (
    {
        "sizes": {"M": 4096, "N": 4096},
        "family": "normal",
        "is_users_own": True,
        "error": 2.2 * EPS,
        "allowed": 9.6 * EPS,
        "reference_error": 2.1 * EPS,
        "outcome": "passed",
    },
    {
        "sizes": {"M": 127, "N": 1023},
        "family": "heavy tails",
        "layout": "contiguous",
        "is_users_own": False,
        "error": 3.1 * EPS,
        "allowed": 9.6 * EPS,
        "reference_error": 2.4 * EPS,
        "outcome": "passed",
    },
    {
        "sizes": {"M": 1, "N": 4097},
        "family": "shifted by 1e4",
        "is_users_own": False,
        "error": 1.7 * EPS,
        "allowed": 8.1 * EPS,
        "reference_error": 2.0 * EPS,
        "outcome": "passed",
    },
)
TOLERANCE = {
    "policy": "reference error",
    "reason": "4 × the error that the reference itself makes in float32, with a floor from the reduction.",
    "error": 3.1 * EPS,
    "allowed": 9.6 * EPS,
    "reference_error": 2.4 * EPS,
    "eps": EPS,
}
COMPILE = {
    "seconds": 0.083,
    "arch": "sm_90a",
    "options": ["--gpu-architecture=sm_90a", "--std=c++17", "-ftz=false"],
    "diagnostics": [{"severity": "warning", "line": 23, "column": 9, "message": "pointless comparison"}],
    "kernels": {
        "softmax_rows": {"registers": 32, "spill_bytes": 0, "static_shared_bytes": 32, "occupancy": 1.0},
        "softmax_warp<float, 32>": {
            "registers": 58,
            "spill_bytes": 16,
            "static_shared_bytes": 0,
            "occupancy": 0.5,
        },
    },
}
TIMING = Timing(
    is_emulation=False,
    kernel=Measurement("this kernel", 0.0942, 0.0938, 0.0951, 200),
    baselines=(
        Measurement("reference (eager)", 0.2540, 0.2531, 0.2562, 200, 2.70, 2.68, 2.71),
        Measurement("torch.compile (max-autotune)", 0.1580, 0.1571, 0.1604, 200, 1.68, 1.64, 1.71),
        Measurement("torch.compile (default)", 0.1890, 0.1880, 0.1902, 200, 2.01, 1.99, 2.02, "TF32 off"),
    ),
    best_baseline="torch.compile (max-autotune)",
    bytes_moved=268_435_456,
    operations=335_544_320,
    speed_of_light_ms=0.0627,
    fraction_of_speed_of_light=0.666,
    claim="1.68 × the best baseline (95 % interval 1.64–1.71), 67 % of the speed of light",
    workload="M = 8192, N = 8192, float32",
    device={"sm_clock_mhz": 1980, "temperature_c": 41, "copy_bandwidth_tb_s": 4.28},
)
ROOFLINE = replace(
    TIMING,
    device={"roofline": {"bandwidth_bytes_per_s": 4.28e12, "operations_per_s": {"float32": 5.1e13}}},
)
EMULATED = Timing(
    is_emulation=True,
    kernel=Measurement("this kernel", 12.4, 12.1, 13.0, 50),
    baselines=(Measurement("reference (eager)", 3.1, 3.0, 3.3, 50, 0.25, 0.24, 0.26),),
    best_baseline="reference (eager)",
    speed_of_light_ms=1.0,
    fraction_of_speed_of_light=0.1,
    claim="0.25 × the best baseline",
    workload="M = 256, N = 256",
)
SUSPECT = Timing(
    is_emulation=False,
    kernel=Measurement("this kernel", 0.0310, 0.0308, 0.0314, 200),
    baselines=(Measurement("reference (eager)", 0.2540, 0.2531, 0.2562, 200, 8.19, 8.1, 8.3),),
    best_baseline="reference (eager)",
    bytes_moved=268_435_456,
    speed_of_light_ms=0.0627,
    fraction_of_speed_of_light=2.02,
    is_suspect=True,
    claim="8.19 × the best baseline",
    workload="M = 8192, N = 8192",
)
SECONDS = {"compile": 0.083, "quick": 0.21, "full": 2.4, "timing": 1.9, "total": 4.6}
USAGE = Usage(input_tokens=12_480, cached_tokens=9_216, output_tokens=5_310, reasoning_tokens=3_902)


def report(outcome: str = "passed", **changes: object) -> Report:
    data: dict = {
        "outcome": outcome,
        "headline": "Right on all 38 draws, 1.68 × the best baseline.",
        "name": "softmax",
        "signature": SIGNATURE,
        "device": H200,
        "level": "full",
        "checks": CHECKS,
        "workloads": WORKLOADS,
        "tolerance": TOLERANCE,
        "compile": COMPILE,
        "not_checked": NOT_CHECKED,
        "timing": TIMING if outcome == "passed" else None,
        "seconds": SECONDS,
    }
    return Report(**{**data, **changes})


PASSED = report()
EMULATION = report(
    device=CPU,
    headline="Right on all 38 draws; timed in emulation only.",
    timing=EMULATED,
    compile={"seconds": 1.9, "options": ["-O2"]},
)
ROOFED = report(timing=ROOFLINE)
SUSPECTED = report(headline="Right on all draws; its time cannot be right.", timing=SUSPECT)
WIDENED = report(
    tolerance={**TOLERANCE, "policy": "user", "reason": "The user set the relative tolerance to 0.01."}
)
WRONG_VALUE = report(
    "wrong_value",
    headline="Rows are wrong where N is not a multiple of 256: 1 of 3 draws.",
    checks=(
        *CHECKS[1:4],
        CheckResult(
            "values",
            "failed",
            "1 of 3 draws is wrong.",
            {
                "workload": "M=127, N=1023 · heavy tails",
                "sizes": {"M": 127, "N": 1023},
                "family": "heavy tails",
                "pattern": "values beyond the last full block of 256 are zero",
                "count": 127,
                "total": 129_921,
                "examples": [
                    {"index": [0, 1022], "got": 0.0, "expected": 0.00193120935},
                    {"index": [1, 1022], "got": 0.0, "expected": 0.0004},
                ],
                "result": "y",
                "map": {"shape": [127, 1023], "cells": ["0" * 63 + "2"] * 24},
            },
        ),
    ),
    workloads=(
        WORKLOADS[0],
        {**WORKLOADS[1], "error": 4.8e5 * EPS, "outcome": "wrong_value"},
    ),
)
NOT_COMPILED = report(
    "not_compiled",
    headline='Does not compile: identifier "expff" is undefined (line 24).',
    level="quick",
    checks=(),
    workloads=(),
    compile={
        "seconds": 0.05,
        "arch": "sm_90a",
        "options": ["--std=c++17"],
        "diagnostics": [
            {"severity": "error", "line": 24, "column": 49, "message": 'identifier "expff" is undefined'},
            {"severity": "warning", "line": 23, "column": 9, "message": "pointless comparison"},
        ],
        "log": 'softmax.cu(24): error: identifier "expff" is undefined\n',
    },
)
CRASHED = report(
    "crashed",
    headline="Illegal address in softmax_rows; the notebook’s variables are untouched.",
    fault={
        "kind": "illegal_address",
        "message": "A thread wrote 4 bytes past the end of y.",
        "kernel": "softmax_rows",
        "details": {
            "argument": "y",
            "element": 129_921,
            "block": [126, 0, 0],
            "thread": [255, 0, 0],
            "line": 25,
        },
    },
    checks=(CheckResult("values", "not_run", "The run ended in a fault."),),
    workloads=(),
)
INCONCLUSIVE = report("inconclusive", headline="The reference hardly depends on w: zeros pass as well.")
REJECTED = report(
    "rejected",
    headline="Rule host-code: main() at line 3.",
    checks=(
        CheckResult("static rules", "failed", "Host code is not run.", {"rule": "host-code", "line": 3}),
    ),
    workloads=(),
    compile={},
)
UNVERIFIED = report(
    "unverified",
    is_verified=False,
    level="memory",
    headline="Ran without a reference.",
    timing=None,
    checks=(),
    workloads=(),
)
ATTEMPTS = (
    Attempt(
        1,
        "Write softmax over the last axis of x.",
        Reply("```cuda\n…\n```", "end", "claude-opus-5-5", USAGE, "req_1", 0.0612),
        BROKEN_SOURCE,
        NOT_COMPILED,
        {"provider": 31.4, "evaluation": 0.2},
    ),
    Attempt(
        2,
        "The compiler says: identifier expff is undefined.",
        Reply("```cuda\n…\n```", "end", "claude-opus-5-5", USAGE, "req_2", 0.0581),
        SOURCE,
        PASSED,
        {"provider": 12.0, "evaluation": 4.6},
    ),
)
ALL = {
    "passed": PASSED,
    "emulation": EMULATION,
    "roofline": ROOFED,
    "suspect": SUSPECTED,
    "widened": WIDENED,
    "wrong_value": WRONG_VALUE,
    "not_compiled": NOT_COMPILED,
    "crashed": CRASHED,
    "inconclusive": INCONCLUSIVE,
    "rejected": REJECTED,
    "unverified": UNVERIFIED,
}
