"""Checked mode: each class of finding with its line, thread, block and element, and honest kernels without any.

A compilation costs more than a run, so many kernels share a source and a plan; what was found is told apart by kernel.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from llmkernel.devices.cpu.checked import CheckedFinding, CheckedRun, run_checked
from llmkernel.devices.plan import Buffer, KernelLaunch, LaunchPlan, PointerArgument, ScalarArgument
from llmkernel.problem.dtypes import dtype_name

from .support import triple

RNG = np.random.default_rng(5)


def floats(count: int) -> np.ndarray:
    return RNG.standard_normal(count).astype(np.float32)


@dataclass
class Call:
    """One launch; arrays are inputs that may be written, but those that `fresh` names, which hold nothing yet."""

    kernel: str
    grid: Any
    block: Any
    arguments: dict[str, Any]
    shared: int = 0
    fresh: tuple[str, ...] = field(default=())


def check(source: str, *calls: Call, timeout: float = 10.0) -> CheckedRun:
    buffers, launches, payloads = [], [], {}
    for call in calls:
        passed: list[Any] = []
        for name, value in call.arguments.items():
            if not isinstance(value, np.ndarray):
                passed.append(ScalarArgument(dtype_name(np.asarray(value).dtype), value.item()))
                continue
            name = f"{call.kernel}_{name}"
            is_fresh = name.removeprefix(f"{call.kernel}_") in call.fresh
            buffers.append(
                Buffer(name, dtype_name(value.dtype), value.shape, "output" if is_fresh else "inout")
            )
            if not is_fresh:
                payloads[name] = np.ascontiguousarray(value).reshape(-1).view(np.uint8)
            passed.append(PointerArgument(name))
        launches.append(
            KernelLaunch(
                call.kernel, triple(call.grid), triple(call.block), call.shared, None, False, tuple(passed), 1
            )
        )
    plan = LaunchPlan(tuple(buffers), tuple(launches), ())
    return run_checked(source, plan, payloads, timeout=timeout)


WRONG = """
#include <cuda_fp16.h>
struct Pair { float sum, top; };
__device__ float total[4];
__shared__ float at_file_scope[64];

__global__ void global_read(const float* x, float* y) {
  int i = blockIdx.x * 32 + threadIdx.x;
  y[i] = x[i + 1];  // global_read
}
__global__ void global_write(float* y) {
  y[(int)threadIdx.x - 1] = 1;  // global_write
}
__global__ void loads_through_a_header(const float* x, float* y) {
  y[threadIdx.x] = __ldg(x + threadIdx.x + 2);  // loads_through_a_header
}
__global__ void atomic_outside(int* bins) {
  atomicAdd(bins + 7, 1);  // atomic_outside
}
__global__ void vector_outside(const float* x, float* y) {
  float4 v = ((const float4*)x)[threadIdx.x];  // vector_outside
  y[threadIdx.x] = v.x + v.w;
}
__global__ void copies_outside(const float* x, float* y) {
  float v[4];
  memcpy(v, x + 4 * threadIdx.x, 16);  // copies_outside
  y[threadIdx.x] = v[1];
}
__global__ void into_the_next_shared_array(const float* x, float* y) {
  __shared__ float first[2][32], second[32];
  int t = threadIdx.x;
  first[0][t] = first[1][t] = second[t] = 0;
  __syncthreads();
  if (t == 30) first[1][t + 2] = x[t];  // into_the_next_shared_array
  __syncthreads();
  y[t] = first[1][t] + second[t];
}
__global__ void dynamic_shared(const float* x, float* y) {
  extern __shared__ float dynamic[];
  dynamic[threadIdx.x + 1] = x[threadIdx.x];  // dynamic_shared
}
__global__ void output_read(float* y) {
  y[blockIdx.x * 32 + threadIdx.x] += 1;  // output_read
}
__global__ void shared_read(float* y) {
  __shared__ Pair pairs[32];
  pairs[threadIdx.x].sum = 1;
  y[threadIdx.x] = pairs[threadIdx.x].top;  // shared_read
}
__global__ void barrier_missing(const float* x, float* y) {
  __shared__ float tile[64];
  tile[threadIdx.x] = x[threadIdx.x];  // barrier_missing, first
  y[threadIdx.x] = tile[63 - threadIdx.x];  // barrier_missing
}
__global__ void syncwarp_missing(const float* x, float* y) {
  __shared__ float tile[32];
  tile[threadIdx.x] = x[threadIdx.x];
  __syncwarp();
  float v = tile[threadIdx.x ^ 1];  // syncwarp_missing, first
  tile[threadIdx.x] = v + 1;  // syncwarp_missing
  __syncwarp();
  y[threadIdx.x] = tile[threadIdx.x];
}
__global__ void lanes_in_step(volatile float* y) {
  __shared__ volatile float part[32];
  part[threadIdx.x] = threadIdx.x;
  __syncwarp();
  if (threadIdx.x < 16) part[threadIdx.x] += part[threadIdx.x + 16];  // lanes_in_step, first
  if (threadIdx.x < 8) part[threadIdx.x] += part[threadIdx.x + 8];  // lanes_in_step
}
__global__ void same_place(const float* x, float* y) {
  y[0] = x[threadIdx.x];  // same_place
}
__global__ void between_blocks(const float* x, float* y) {
  y[blockIdx.x] = x[blockIdx.x];  // between_blocks, first
  if (blockIdx.x) y[8 + blockIdx.x] = y[blockIdx.x - 1];  // between_blocks
}
__global__ void fence_missing(const float* x, float* part, unsigned* count, float* y) {
  __shared__ bool is_last;
  if (threadIdx.x == 0) {
    part[blockIdx.x] = x[blockIdx.x];  // fence_missing, first
    is_last = atomicAdd(count, 1u) == gridDim.x - 1;
  }
  __syncthreads();
  if (is_last && threadIdx.x == 0) {
    float sum = 0;
    for (int b = 0; b < gridDim.x; b++) sum += part[b];  // fence_missing
    *y = sum;
  }
}
__global__ void counted_before_all_have(const int* x, int* out) {
  __shared__ int bins[16];
  int t = threadIdx.x;
  if (t < 16) bins[t] = 0;
  __syncthreads();
  atomicAdd(&bins[x[t]], 1);  // counted_before_all_have
  if (t < 16) out[t] = bins[t];  // counted_before_all_have, first
}
__global__ void of_the_module(const float* x) {
  total[2] += x[threadIdx.x];  // of_the_module
}
__global__ void file_scope(const float* x, float* y) {
  at_file_scope[threadIdx.x] = x[threadIdx.x];  // file_scope, first
  y[threadIdx.x] = at_file_scope[threadIdx.x ^ 32];  // file_scope
}
__global__ void halves(half* h) {
  half v = h[threadIdx.x + 1];  // halves, first
  h[threadIdx.x] = v;  // halves
}
__global__ void lanes_have_left(const float* x, float* y) {
  if (threadIdx.x >= 40) return;
  __syncthreads();  // lanes_have_left
  y[threadIdx.x] = x[threadIdx.x];
}
"""

CALLS = (
    Call("global_read", 3, 32, {"x": floats(96), "y": floats(96)}),
    Call("global_write", 1, 32, {"y": floats(31)}),
    Call("loads_through_a_header", 1, (8, 4), {"x": floats(9), "y": floats(32)}),
    Call("atomic_outside", 1, 32, {"bins": np.zeros(5, np.int32)}),
    Call("vector_outside", 1, 8, {"x": floats(30), "y": floats(8)}),
    Call("copies_outside", 1, 8, {"x": floats(29), "y": floats(8)}),
    Call("into_the_next_shared_array", 1, 32, {"x": floats(32), "y": floats(32)}),
    Call("dynamic_shared", 2, 32, {"x": floats(32), "y": floats(32)}, shared=128),
    Call("output_read", 2, 32, {"y": floats(64)}, fresh=("y",)),
    Call("shared_read", 1, 32, {"y": floats(32)}),
    Call("barrier_missing", 1, 64, {"x": floats(64), "y": floats(64)}),
    Call("syncwarp_missing", 1, 32, {"x": floats(32), "y": floats(32)}),
    Call("lanes_in_step", 1, 32, {"y": floats(32)}),
    Call("same_place", 1, 32, {"x": floats(32), "y": floats(1)}),
    Call("between_blocks", 4, 1, {"x": floats(4), "y": floats(16)}),
    Call(
        "fence_missing",
        4,
        32,
        {"x": floats(4), "part": floats(4), "count": np.zeros(1, np.uint32), "y": floats(1)},
    ),
    Call(
        "counted_before_all_have",
        1,
        64,
        {"x": np.arange(64, dtype=np.int32) % 16, "out": np.zeros(16, np.int32)},
    ),
    Call("of_the_module", 1, 2, {"x": floats(2)}),
    Call("file_scope", 1, 64, {"x": floats(64), "y": floats(64)}),
    Call("halves", 1, 32, {"h": floats(33).astype(np.float16)}),
    Call("lanes_have_left", 1, 64, {"x": floats(64), "y": floats(64)}),
)


def line_of(mark: str) -> int:
    return next(n for n, line in enumerate(WRONG.split("\n"), 1) if line.endswith(f"// {mark}"))


@pytest.fixture(scope="module")
def found() -> dict[str, list[CheckedFinding]]:
    run = check(WRONG, *CALLS)
    assert not run.problem
    by_kernel: dict[str, list[CheckedFinding]] = {}
    for finding in run.findings:
        by_kernel.setdefault(finding.kernel, []).append(finding)
    return by_kernel


# Kernel: outcome, which memory, element, thread, block.
ALONE = {
    "global_read": ("out_of_bounds", "argument", "x", 96, (31, 0, 0), (2, 0, 0)),
    "global_write": ("out_of_bounds", "argument", "y", -1, (0, 0, 0), (0, 0, 0)),
    "loads_through_a_header": ("out_of_bounds", "argument", "x", 9, (7, 0, 0), (0, 0, 0)),
    "atomic_outside": ("out_of_bounds", "argument", "bins", 7, (0, 0, 0), (0, 0, 0)),
    "vector_outside": ("out_of_bounds", "argument", "x", 31, (7, 0, 0), (0, 0, 0)),
    "copies_outside": ("out_of_bounds", "argument", "x", 29, (7, 0, 0), (0, 0, 0)),
    "into_the_next_shared_array": ("out_of_bounds", "shared", "first", 64, (30, 0, 0), (0, 0, 0)),
    "dynamic_shared": ("out_of_bounds", "shared", "", 32, (31, 0, 0), (0, 0, 0)),
    "output_read": ("uninitialised_read", "argument", "y", 0, (0, 0, 0), (0, 0, 0)),
    "shared_read": ("uninitialised_read", "shared", "pairs", 0, (0, 0, 0), (0, 0, 0)),
}


@pytest.mark.parametrize("kernel", ALONE)
def test_a_wrong_access_is_named_with_element_line_thread_and_block(found, kernel):
    outcome, space, name, element, thread, block = ALONE[kernel]
    (finding,) = found[kernel]
    details = finding.details
    assert finding.outcome == outcome
    assert finding.tool == {"out_of_bounds": "memcheck"}.get(outcome, "initcheck")
    assert details[space] == (f"{kernel}_{name}" if space == "argument" else name)
    assert (details["element"], details["line"]) == (element, line_of(kernel))
    assert (tuple(details["thread"]), tuple(details["block"])) == (thread, block)
    assert f"lement {element} of" in finding.message
    assert f"line {line_of(kernel)}" in finding.message


# Kernel: which memory, element, and the two threads with their blocks: first and second.
RACES = {
    "barrier_missing": ("shared", "tile", 32, (31, 0), (32, 0)),
    "syncwarp_missing": ("shared", "tile", 0, (1, 0), (0, 0)),
    "lanes_in_step": ("shared", "part", 8, (8, 0), (0, 0)),
    "same_place": ("argument", "y", 0, (0, 0), (1, 0)),
    "between_blocks": ("argument", "y", 0, (0, 0), (0, 1)),
    "fence_missing": ("argument", "part", 0, (0, 0), (0, 3)),
    "counted_before_all_have": ("shared", "bins", 0, (16, 0), (0, 0)),
    "of_the_module": ("variable", "total", 2, (0, 0), (1, 0)),
    "file_scope": ("shared", "at_file_scope", 32, (0, 0), (32, 0)),
    "halves": ("argument", "h", 1, (0, 0), (1, 0)),
}


@pytest.mark.parametrize("kernel", RACES)
def test_a_race_is_named_with_element_and_both_accesses(found, kernel):
    space, name, element, *threads = RACES[kernel]
    findings = found[kernel]
    assert {f.outcome for f in findings} == {"data_race"}
    assert {f.tool for f in findings} == {"racecheck"}
    first = line_of(f"{kernel}, first") if f"// {kernel}, first" in WRONG else line_of(kernel)
    for finding in findings:
        details = finding.details
        both = {
            (details["line"], details["thread"][0], details["block"][0]),
            (details["other_line"], details["other_thread"][0], details["other_block"][0]),
        }
        lines = {line for line, _, _ in both}
        if lines != {first, line_of(kernel)} or {(t, b) for _, t, b in both} != set(threads):
            continue
        assert details[space] == (f"{kernel}_{name}" if space == "argument" else name)
        assert details["element"] == element
        break
    else:
        pytest.fail("\n".join(f"{f.message} {f.details}" for f in findings))


def test_a_barrier_that_a_part_of_a_warp_has_left_is_named(found):
    (finding,) = found["lanes_have_left"]
    assert (finding.outcome, finding.tool) == ("invalid_synchronization", "synccheck")
    details = finding.details
    assert (details["line"], details["at_barrier"], details["finished"]) == (
        line_of("lanes_have_left"),
        8,
        24,
    )
    assert details["block"] == [0, 0, 0]


@pytest.mark.parametrize(
    ("body", "outcome", "tool", "says"),
    [
        (
            "if (t < 32) __syncthreads(); else\n__syncthreads(); y[t] = x[t];",
            "invalid_synchronization",
            "synccheck",
            "different barriers, line 2 and line 3",
        ),
        (
            "if (t < 8) __syncthreads(); else if (t < 16) __syncwarp(0xffff); y[t] = x[t];",
            "invalid_synchronization",
            "synccheck",
            "No thread of the block can go on",
        ),
        ("y[t] = __shfl_sync(1, x[t], 0);", "invalid_synchronization", "synccheck", "leaves it out"),
        (
            "y[t] = ((const float2*)(x + 1))[t / 4].x;",
            "crashed",
            "memcheck",
            "Element 1 of `k_x` is accessed by thread (0, 0, 0) of block (0, 0, 0) at line 2",
        ),
        (
            "__shared__ int i[64]; *(int4*)(i + 4 * t + 2) = make_int4(0, 0, 0, 0);",
            "crashed",
            "memcheck",
            "Element 2 of the shared `i` is accessed by thread (0, 0, 0) of block (0, 0, 0) at line 2",
        ),
        ("y[t] = *(x + t + (1ll << 40));", "out_of_bounds", "memcheck", "belongs to no argument"),
    ],
)
def test_what_ends_a_run_is_a_finding_too(body, outcome, tool, says):
    source = f"__global__ void k(const float* x, float* y) {{ int t = threadIdx.x;\n{body} }}"
    run = check(source, Call("k", 1, 64, {"x": floats(64), "y": floats(64)}))
    assert not run.problem
    finding = run.findings[-1]
    assert (finding.outcome, finding.tool) == (outcome, tool)
    assert says in finding.message
    assert finding.details["line"] in (2, 3)
    assert finding.details["block"] == [0, 0, 0]


HONEST = """
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_pipeline.h>
#include <llmkernel.cuh>
#include <mma.h>
namespace cg = cooperative_groups;

// Partial sums, of which the last block makes the total.
__global__ void last_block(const float* x, float* part, unsigned* count, float* y, int n) {
  __shared__ bool is_last;
  float sum = 0;
  for (int i = blockIdx.x * 64 + threadIdx.x; i < n; i += gridDim.x * 64) sum += x[i];
  sum = llmkernel::block_sum(sum);
  if (threadIdx.x == 0) {
    part[blockIdx.x] = sum;
    __threadfence();
    is_last = atomicAdd(count, 1u) == gridDim.x - 1;
  }
  __syncthreads();
  if (!is_last) return;
  sum = threadIdx.x < gridDim.x ? part[threadIdx.x] : 0;
  sum = llmkernel::block_sum(sum);
  if (threadIdx.x == 0) *y = sum, *count = 0;
}
// Each block waits for the one before it, through a volatile flag.
__global__ void look_back(const float* x, float* part, volatile int* flag, float* y) {
  __shared__ float before;
  int b = blockIdx.x, t = threadIdx.x;
  float v = x[b * 32 + t];
  for (int o = 1; o < 32; o <<= 1) {
    float w = __shfl_up_sync(~0u, v, o);
    if (t >= o) v += w;
  }
  if (t == 31) {
    float p = 0;
    if (b) {
      while (flag[b - 1] == 0) {}
      __threadfence();
      p = part[b - 1];
    }
    part[b] = p + v;
    __threadfence();
    flag[b] = 1;
    before = p;
  }
  __syncthreads();
  y[b * 32 + t] = v + before;
}
// All blocks wait for one another, twice.
__device__ void all_blocks(unsigned* arrived, unsigned goal) {
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(arrived, 1u);
    while (atomicAdd(arrived, 0u) < goal) {}
  }
  __syncthreads();
}
__global__ void grid_barrier(float* a, float* b, unsigned* arrived, int n) {
  int i = blockIdx.x * 32 + threadIdx.x;
  b[i] = 2 * a[i];
  all_blocks(arrived, gridDim.x);
  a[i] = b[(i + 32) % n];
  all_blocks(arrived, 2 * gridDim.x);
  b[i] = a[(i + 64) % n];
}
__global__ void lock(int* held, float* sum, const float* x) {
  for (bool is_done = false; !is_done;) {
    if (atomicCAS(held, 0, 1)) continue;
    __threadfence();
    *sum += x[blockIdx.x * 32 + threadIdx.x];
    __threadfence();
    atomicExch(held, 0);
    is_done = true;
  }
}
// The value that the loop begins with is read without an atomic, as in CUDA's own example.
__global__ void compare_and_swap(int* top, int* filtered, const float* x) {
  int mine = __float_as_int(fabsf(x[blockIdx.x * 32 + threadIdx.x])), old = *top, assumed;
  do {
    assumed = old;
    if (assumed >= mine) break;
    old = atomicCAS(top, assumed, mine);
  } while (assumed != old);
  if (mine > *filtered) atomicMax(filtered, mine);
}
__global__ void same_value(const float* x, int* any) {
  __shared__ int here;
  if (threadIdx.x == 0) here = 0;
  __syncthreads();
  if (x[blockIdx.x * 32 + threadIdx.x] > 0) here = *any = 1;
  __syncthreads();
  if (threadIdx.x == 0 && here) *any = 1;
}
// One warp fills, the other waits for a volatile flag.
__global__ void producer(const float* x, float* y) {
  __shared__ float filled[32];
  __shared__ volatile int is_ready;
  if (threadIdx.x == 0) is_ready = 0;
  __syncthreads();
  if (threadIdx.x < 32) {
    filled[threadIdx.x] = x[threadIdx.x];
    __threadfence_block();
    __syncwarp();
    if (threadIdx.x == 0) is_ready = 1;
  } else {
    while (!is_ready) {}
    __threadfence_block();
    y[threadIdx.x - 32] = filled[threadIdx.x - 32];
  }
}
__global__ void groups(const float* x, float* y) {
  auto tile = cg::tiled_partition<32>(cg::this_thread_block());
  __shared__ float part[2];
  __shared__ __align__(16) float stage[2][64];
  int t = threadIdx.x;
  for (int i = 0; i < 2; i++) {
    __pipeline_memcpy_async(&stage[i][t], x + t, 4);
    __pipeline_commit();
  }
  __pipeline_wait_prior(0);
  __syncthreads();
  float sum = cg::reduce(tile, stage[0][(t + 1) % 64] + stage[1][t], cg::plus<float>());
  if (tile.thread_rank() == 0) part[tile.meta_group_rank()] = sum;
  cg::this_thread_block().sync();
  y[t] = part[0] + part[1];
}
__global__ void matrices(const half* a, const half* b, float* c) {
  using namespace nvcuda;
  __shared__ half left[256];
  for (int i = threadIdx.x; i < 256; i += 32) left[i] = a[i];
  __syncwarp();
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> x;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> y;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
  wmma::fill_fragment(sum, 0.0f);
  wmma::load_matrix_sync(x, left, 16);
  wmma::load_matrix_sync(y, b, 16);
  wmma::mma_sync(sum, x, y, sum);
  wmma::store_matrix_sync(c, sum, 16, wmma::mem_row_major);
}
// Padding is copied with a struct, bytes of one word belong to different threads.
struct Mixed { char c; float f; double d; };
__global__ void structs(const float* x, float* y, unsigned char* bytes) {
  __shared__ Mixed mixed[64], copies[64];
  int t = threadIdx.x;
  mixed[t].c = 1, mixed[t].f = x[t], mixed[t].d = t;
  __syncthreads();
  copies[t] = mixed[63 - t];
  bytes[t] = copies[t].c;
  y[t] = copies[t].f;
}
"""


def honest_calls() -> list[Call]:
    half = floats(256).astype(np.float16)
    zero = np.zeros(1, np.uint32)
    return [
        Call(
            "last_block",
            5,
            64,
            {"x": floats(999), "part": floats(5), "count": zero, "y": floats(1), "n": np.int32(999)},
            fresh=("part", "y"),
        ),
        Call(
            "look_back",
            9,
            32,
            {"x": floats(288), "part": floats(9), "flag": np.zeros(9, np.int32), "y": floats(288)},
            fresh=("part", "y"),
        ),
        Call(
            "grid_barrier", 6, 32, {"a": floats(192), "b": floats(192), "arrived": zero, "n": np.int32(192)}
        ),
        Call("lock", 3, 32, {"held": np.zeros(1, np.int32), "sum": floats(1), "x": floats(96)}),
        Call(
            "compare_and_swap",
            3,
            32,
            {"top": np.zeros(1, np.int32), "filtered": np.zeros(1, np.int32), "x": floats(96)},
        ),
        Call("same_value", 3, 32, {"x": floats(96), "any": np.zeros(1, np.int32)}),
        Call("producer", 1, 64, {"x": floats(32), "y": floats(32)}, fresh=("y",)),
        Call("groups", 1, 64, {"x": floats(64), "y": floats(64)}, fresh=("y",)),
        Call("matrices", 1, 32, {"a": half, "b": half, "c": floats(256)}, fresh=("c",)),
        Call(
            "structs",
            1,
            64,
            {"x": floats(64), "y": floats(64), "bytes": np.zeros(64, np.uint8)},
            fresh=("y",),
        ),
    ]


def test_honest_kernels_raise_no_alarm():
    run = check(HONEST, *honest_calls())
    assert not run.problem
    assert [f.message for f in run.findings] == []


# What the kernel loses, and which one then has a race.
BROKEN = {
    "a fence": ("last_block", "    __threadfence();\n    is_last", "    is_last"),
    "the fence ahead of a flag": ("look_back", "    __threadfence();\n    flag", "    flag"),
    "the barrier ahead of the others": (
        "grid_barrier",
        "  __syncthreads();\n  if (threadIdx.x == 0) {\n    __threadfence",
        "  if (threadIdx.x == 0) {\n    __threadfence",
    ),
    "the barrier after the copies": ("groups", "prior(0);\n  __syncthreads();", "prior(0);"),
    "the barrier of a warp": (
        "producer",
        "    __syncwarp();\n    if (threadIdx.x == 0) is_ready",
        "    if (threadIdx.x == 0) is_ready",
    ),
    "the fence of a lock": ("lock", "    __threadfence();\n    atomicExch", "    atomicExch"),
}


@pytest.mark.parametrize("lost", BROKEN)
def test_an_honest_kernel_without_its_order_has_a_race(lost):
    kernel, before, after = BROKEN[lost]
    assert HONEST.count(before) == 1
    run = check(HONEST.replace(before, after), *(c for c in honest_calls() if c.kernel == kernel))
    assert {(f.outcome, f.kernel) for f in run.findings} == {("data_race", kernel)}


def test_a_run_that_cannot_be_made_says_why():
    arrays = {"x": floats(4), "y": floats(4)}
    kernel = "__global__ void k(const float* x, float* y) { %s }"
    endless = check(
        kernel % "while (((volatile const float*)x)[0] == x[0]) {}", Call("k", 1, 1, arrays), timeout=0.3
    )
    assert "still going" in endless.problem
    trap = check(kernel % "y[5] = 1; __trap();", Call("k", 1, 1, arrays))
    assert "__trap()" in trap.problem
    assert [f.outcome for f in trap.findings] == ["out_of_bounds"]
    does_not_compile = check(kernel % "y[0] = z;", Call("k", 1, 1, arrays))
    assert "instrumented build fails" in does_not_compile.problem
    unsupported = check(kernel % 'asm("");', Call("k", 1, 1, arrays))
    assert "inline PTX" in unsupported.problem
    large = {"x": np.broadcast_to(np.float32(0), (1 << 24,)), "y": floats(4)}
    assert "too large" in check(kernel % "y[0] = x[0];", Call("k", 1, 1, large)).problem


ADD_ONE = """//! add_one(x: float32[N]) -> y: float32[N]
//! add_one<<<ceil_div(N, 64), 64>>>(x, y, N)
__global__ void add_one(const float* x, float* y, int N) {
  __shared__ float tile[64], spare[64];
  int i = blockIdx.x * 64 + threadIdx.x;
  tile[threadIdx.x] = i < N ? x[i] : 0;
  __syncthreads();
  if (i < N) y[i] = tile[threadIdx.x] + 1;
  if (threadIdx.x == SPARE) tile[threadIdx.x + 1] = 0;
  spare[threadIdx.x] = 0;
}
"""


@pytest.mark.parametrize(("spare", "outcome"), [("64", "passed"), ("63", "out_of_bounds")])
def test_a_report_shows_the_four_tools(spare, outcome):
    from llmkernel.evaluation.evaluate import evaluate

    source = ADD_ONE.replace("SPARE", spare)
    report = evaluate(
        source, lambda x: x + np.float32(1), [floats(300)], device="cpu", level="quick", checks=("all",)
    )
    assert report.outcome == outcome
    shown = {c.name: c.status for c in report.checks if c.name.startswith("checked mode")}
    if outcome == "passed":
        assert shown == {
            f"checked mode {tool}": "passed" for tool in ("memcheck", "initcheck", "racecheck", "synccheck")
        }
    else:
        assert shown == {"checked mode memcheck": "failed"}
        assert "line 9" in report.headline
        assert "Element 64 of the shared `tile`" in report.headline
