"""Whole plans: several launches, scratch and zeroed buffers, offsets, and which launch a fault is of."""

from __future__ import annotations

import numpy as np
import pytest

from llmkernel.devices.base import ExecutionOptions
from llmkernel.devices.plan import Buffer, KernelLaunch, LaunchPlan, PointerArgument, ScalarArgument
from llmkernel.errors import LaunchError

from .support import DEVICE, image_of

SOURCE = """
__global__ void square(const float* x, float* s, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) s[i] = x[i] * x[i];
}
template <int BLOCK> __global__ void collect(const float* s, float* sums, long long* count, int n) {
  int i = blockIdx.x * BLOCK + threadIdx.x;
  if (i < n) { atomicAdd(sums, s[i]); atomicAdd((unsigned long long*)count, 1ull); }
}
"""
KERNELS = ("square", "collect<64>")
N = 500


def launch(kernel: str, line: int, *arguments: object) -> KernelLaunch:
    return KernelLaunch(kernel, (8, 1, 1), (64, 1, 1), 0, None, False, arguments, line)  # type: ignore[arg-type]


def plan(n: int = N) -> LaunchPlan:
    count = ScalarArgument("int32", n)
    return LaunchPlan(
        buffers=(
            Buffer("x", "float32", (N,), "input"),
            Buffer("sums", "float32", (3,), "output", is_zeroed=True),
            Buffer("count", "int64", (), "output", is_zeroed=True),
            Buffer("s", "float32", (N,), "scratch"),
        ),
        launches=(
            launch("square", 4, PointerArgument("x"), PointerArgument("s"), ScalarArgument("int32", N)),
            launch(
                "collect<64>",
                5,
                PointerArgument("s"),
                PointerArgument("sums", 1),
                PointerArgument("count"),
                count,
            ),
        ),
        results=("sums", "count"),
    )


def images() -> dict:
    dirty = {
        "sums": np.full(3, np.nan, np.float32),
        "count": np.array(99),
        "s": np.full(N, np.nan, np.float32),
    }
    return {"x": image_of(np.arange(N, dtype=np.float32) % 7), **{k: image_of(v) for k, v in dirty.items()}}


def test_launches_run_in_order_over_scratch_zeroed_buffers_and_offsets() -> None:
    module = DEVICE.compile(SOURCE, KERNELS)
    runs = [images() for _ in range(3)]
    for done in DEVICE.execute_many(module, plan(), runs, ExecutionOptions(timeout_seconds=10)):
        assert done.fault is None
        assert done.elapsed_ms > 0
    for run in runs:
        expected = ((np.arange(N) % 7) ** 2).sum()
        assert run["sums"].payload.view(np.float32).tolist() == [0, expected, 0]
        assert run["count"].payload.view(np.int64)[0] == N
        assert (run["x"].payload.view(np.float32) == np.arange(N) % 7).all()


def test_a_fault_is_of_its_own_launch() -> None:
    module = DEVICE.compile(SOURCE, KERNELS)
    fault = DEVICE.execute(module, plan(100_000), images(), ExecutionOptions(timeout_seconds=10)).fault
    # 512 threads read 500 elements, and the bytes up to the next multiple of 256 are there.
    assert fault is None
    wide = plan(100_000)
    wide = LaunchPlan(
        wide.buffers,
        (
            wide.launches[0],
            KernelLaunch("collect<64>", (9, 1, 1), (64, 1, 1), 0, None, False, wide.launches[1].arguments, 5),
        ),
        wide.results,
    )
    fault = DEVICE.execute(module, wide, images(), ExecutionOptions(timeout_seconds=10)).fault
    assert fault is not None
    assert (fault.kernel, fault.details["launch_line"], fault.details["argument"]) == ("collect<64>", 5, "s")
    assert fault.details["element"] == 512


def test_a_plan_without_launches_zeroes_its_buffers() -> None:
    module = DEVICE.compile(SOURCE, KERNELS)
    whole = plan()
    run = images()
    assert (
        DEVICE.execute(module, LaunchPlan(whole.buffers, (), whole.results), run, ExecutionOptions()).fault
        is None
    )
    assert not run["sums"].payload.any()


def test_clusters_cooperative_launches_and_limits() -> None:
    limits = DEVICE.limits()
    assert (limits.device, limits.arch, limits.num_sms, limits.max_cluster_size) == ("cpu", "host", 8, 1)
    assert limits.memory_bytes > 0
    assert {"compiler", "compiler_kind", "libc"} <= set(DEVICE.versions())
    module = DEVICE.compile("__global__ void k() {}", ["k"])
    for cluster, is_cooperative in (((2, 1, 1), False), (None, True)):
        one = KernelLaunch("k", (2, 1, 1), (32, 1, 1), 0, cluster, is_cooperative, (), 9)
        with pytest.raises(LaunchError) as caught:
            DEVICE.execute(module, LaunchPlan((), (one,), ()), {}, ExecutionOptions())
        assert caught.value.line == 9


def test_many_runs_in_one_process() -> None:
    module = DEVICE.compile("__device__ int n; __global__ void k(int* x) { x[0] = n++; }", ["k"])
    one = KernelLaunch("k", (1, 1, 1), (1, 1, 1), 0, None, False, (PointerArgument("x"),), 1)
    many = LaunchPlan((Buffer("x", "int32", (1,), "output"),), (one,), ("x",))
    runs = [{"x": image_of(np.zeros(1, np.int32))} for _ in range(4000)]
    done = DEVICE.execute_many(module, many, runs, ExecutionOptions(timeout_seconds=10))
    assert len(done) == 4000
    assert [int(r["x"].payload.view(np.int32)[0]) for r in runs] == list(range(4000))
