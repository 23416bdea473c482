"""What one call of a generated kernel costs on the host, beside other ways to launch a kernel."""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

CALLS = 2000
ROUNDS = 9
WARM_UP = 300

_ADD = """//! add(x: float32[N], y: float32[N]) -> z: float32[N]
//! add<<<ceil_div(N, 128), 128>>>(x, y, z, N)
__global__ void add(const float* x, const float* y, float* z, int N) {
    int i = blockIdx.x * 128 + threadIdx.x;
    if (i < N) z[i] = x[i] + y[i];
}
"""


def call(device: str, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Measure host microseconds a call with 1024 elements, all in one run; only on a GPU with torch."""
    del arguments
    if device != "cuda":
        return []
    import cupy
    import torch

    from llmkernel.candidate.candidate import parse_candidate
    from llmkernel.evaluation.evaluate import evaluate_problem
    from llmkernel.problem.problem import make_problem
    from llmkernel.problem.reference import make_reference
    from llmkernel.synthesis.generated_kernel import GeneratedKernel

    def generated(x: Any, y: Any) -> Any:
        problem = make_problem(*make_reference(lambda x, y: x + y, [x, y], name="add"))
        report = evaluate_problem(problem, _ADD, device="cuda", level="quick", with_timing=False)
        return GeneratedKernel(problem, parse_candidate(_ADD), report, "cuda")

    x, y = (torch.randn(1024, device="cuda") for _ in range(2))
    cx, cy = (cupy.random.randn(1024).astype(cupy.float32) for _ in range(2))
    on_torch, on_cupy = generated(x, y), generated(cx, cy)
    raw = cupy.RawKernel(_ADD.replace("__global__", 'extern "C" __global__'), "add")
    out = cupy.empty_like(cx)
    ways: dict[str, Callable[[], Any]] = {
        "generated kernel, torch tensors": lambda: on_torch(x, y),
        "torch.add": lambda: torch.add(x, y),
        "generated kernel, CuPy arrays": lambda: on_cupy(cx, cy),
        "cupy.add": lambda: cupy.add(cx, cy),
        "cupy.RawKernel, no allocation": lambda: raw((8,), (128,), (cx, cy, out, 1024)),
    }
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, function in ways.items():
            times[name].append(_microseconds(function, torch))
    base = statistics.median(times["torch.add"])
    return [
        {
            "what": name,
            "us_per_call": statistics.median(found),
            "least": min(found),
            "most": max(found),
            "ratio_to_torch_add": statistics.median(found) / base,
        }
        for name, found in times.items()
    ]


def _microseconds(function: Callable[[], Any], torch: Any) -> float:
    for _ in range(WARM_UP):
        function()
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(CALLS):
        function()
    elapsed = time.perf_counter() - began
    torch.cuda.synchronize()
    return 1e6 * elapsed / CALLS
