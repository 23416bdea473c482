"""Memory stays a stated multiple of the problem's own arrays, however many draws a verification makes."""

from __future__ import annotations

import re
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from llmkernel.evaluation.evaluate import evaluate
from llmkernel.evaluation.worker.client import POOL

ROOT = Path(__file__).parents[3]
STATED = re.search(
    r"at most (\d+) times in the notebook's process\s+and (\d+) times in the worker",
    (ROOT / "docs/trust.md").read_text(encoding="utf-8"),
)
# What does not grow with the arrays: the report, parsed sources, the compiler's answer.
CONSTANT = 16 << 20
SIZE = 1 << 18


def scaled(x):
    return x * x.dtype.type(0.75)


def axpy(a, x, y):
    return a * x + y


def normal(dtype, seed=0):
    return np.random.default_rng(seed).standard_normal(SIZE).astype(dtype)


def most_resident(pid):
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) << 10


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize(
    ("name", "reference", "inputs", "results"),
    [
        ("honest_axpy", axpy, [1.5, normal(np.float32), normal(np.float32, 1)], 1),
        ("honest_scale_half", scaled, [normal(np.float16)], 1),
    ],
    ids=["float32", "float16"],
)
def test_a_full_verification_needs_a_stated_multiple(name, reference, inputs, results):
    source = (ROOT / f"tests/rogues/{name}.cu").read_text()
    arrays = [v for v in inputs if isinstance(v, np.ndarray)]
    own = sum(v.nbytes for v in arrays) + results * arrays[0].nbytes
    small = [v[:64] if isinstance(v, np.ndarray) else v for v in inputs]
    POOL.discard(POOL.get("cpu"))
    assert evaluate(source, reference, small, device="cpu", level="quick").outcome == "passed"
    worker = POOL.get("cpu").pid
    before = most_resident(worker)
    tracemalloc.start()
    try:
        report = evaluate(source, reference, inputs, device="cpu", level="full")
        here = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert report.outcome == "passed", report.headline
    assert len(report.workloads) > 25
    assert POOL.get("cpu").pid == worker
    assert here <= int(STATED[1]) * own + CONSTANT
    assert most_resident(worker) - before <= int(STATED[2]) * own + CONSTANT
