"""From source to verdict, from a crash to a usable worker, and replaying a record."""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
import uuid
from pathlib import Path
from typing import Any

import numpy as np

REPEATS = 5


def _softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def _problem(device: str) -> tuple[Any, list[Any], str, str]:
    """Return reference, inputs, the library's softmax and a label: 4096² on a GPU, 512 × 1000 emulated."""
    from llmkernel.synthesis.synthesize import synthesize

    rows, columns = (4096, 4096) if device == "cuda" else (512, 1000)
    host = np.random.default_rng(0).standard_normal((rows, columns), dtype=np.float32)
    reference: Any = _softmax
    inputs: list[Any] = [host]
    if device == "cuda":
        torch = _torch()
        if torch is not None:
            reference, inputs = (lambda x: torch.softmax(x, -1)), [torch.from_numpy(host).cuda()]
    # Asked for with NumPy and a small input: torch.compile in all its modes would take a minute here.
    kernel = synthesize(
        _softmax, "softmax over the last axis", inputs=[host[:64, :100]], provider="library", device=device
    )
    return reference, inputs, kernel.source, f"softmax float32 {rows}×{columns}"


def _torch() -> Any:
    try:
        import torch
    except ImportError:
        return None
    return torch if torch.cuda.is_available() else None


def verdict(device: str, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Measure compile, quick and full verification of softmax, each time from a source never seen before."""
    from llmkernel.evaluation.evaluate import evaluate

    del arguments
    reference, inputs, source, label = _problem(device)
    rows = []
    for level in ("quick", "full"):
        wall, stages = [], []
        for _ in range(REPEATS):
            # Other names, so that no cache holds it: NVRTC keeps machine code by its own intermediate code.
            fresh = source.replace("softmax_", f"softmax_{uuid.uuid4().hex[:8]}_")
            began = time.perf_counter()
            report = evaluate(fresh, reference, inputs, device=device, level=level)
            wall.append(time.perf_counter() - began)
            stages.append(report.seconds)
            assert report.outcome == "passed", report.headline
        rows.append(
            {
                "what": f"{level} verdict, {label}",
                "seconds": statistics.median(wall),
                "least": min(wall),
                "most": max(wall),
                "compile_s": statistics.median(s["compile"] for s in stages),
                "bar_s": 1.5 if level == "quick" else 5.0,
            }
        )
    return rows


_CRASH = """//! crash(x: float32[N]) -> y: float32[N]
//! crash<<<1, 32>>>(x, y, N)
__global__ void crash(const float* x, float* y, int N) { *(volatile int*)16 = N; }
"""
_ADD = """//! add(x: float32[N]) -> y: float32[N]
//! add<<<ceil_div(N, 128), 128>>>(x, y, N)
__global__ void add(const float* x, float* y, int N) {
    int i = blockIdx.x * 128 + threadIdx.x;
    if (i < N) y[i] = x[i] + 1.0f;
}
"""


def crash(device: str, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Measure from the report of a crashed candidate to a worker that answers, with a spare ready."""
    from llmkernel.evaluation.evaluate import evaluate
    from llmkernel.evaluation.worker.client import POOL

    del arguments
    x = np.ones(1000, np.float32)
    ready, whole = [], []
    for _ in range(REPEATS):
        assert evaluate(_ADD, lambda x: x + 1, [x], device=device, level="quick").outcome == "passed"
        POOL.warm(device)
        POOL.wait_for_spare(device)
        began = time.perf_counter()
        report = evaluate(_CRASH, lambda x: x + 1, [x], device=device, level="quick")
        whole.append(time.perf_counter() - began)
        assert report.outcome == "crashed", report.headline
        began = time.perf_counter()
        POOL.get(device).limits()
        ready.append(time.perf_counter() - began)
    return [
        {
            "what": "crash to a worker that answers, spare ready",
            "seconds": statistics.median(ready),
            "most": max(ready),
            "bar_s": 0.3,
        },
        {"what": "judging the crashing candidate", "seconds": statistics.median(whole), "most": max(whole)},
    ]


def replay(device: str, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Measure a replay that needs no verification against the first generation."""
    from llmkernel.synthesis.synthesize import synthesize

    del arguments
    x = np.random.default_rng(0).standard_normal((64, 100), dtype=np.float32)
    with tempfile.TemporaryDirectory() as folder:

        def once() -> float:
            began = time.perf_counter()
            synthesize(
                _softmax,
                "softmax over the last axis",
                inputs=[x],
                name="softmax_bench",
                provider="library",
                device=device,
                records_dir=Path(folder),
            )
            return time.perf_counter() - began

        first = once()
        again = [once() for _ in range(REPEATS)]
    return [
        {"what": "first generation (library)", "seconds": first},
        {"what": "replay", "seconds": statistics.median(again), "most": max(again), "bar_s": 0.3},
    ]
