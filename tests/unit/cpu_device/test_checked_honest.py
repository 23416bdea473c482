"""Checked mode raises no alarm over kernels that are right, and does where one of them loses a barrier or a fence."""

from __future__ import annotations

import numpy as np
import pytest

from .checked_support import Call, check, floats

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
// One barrier a step is enough for two buffers in turn.
__global__ void two_buffers(const float* x, float* y) {
  __shared__ float tile[2][64];
  int t = threadIdx.x, now = 0;
  tile[0][t] = x[t];
  __syncthreads();
  for (int i = 0; i < 5; i++, now ^= 1) {
    tile[now ^ 1][t] = tile[now][(t + 1) % 64] + 1;
    __syncthreads();
  }
  y[t] = tile[now][t];
}
__global__ void warp_scan(const float* x, float* y) {
  __shared__ float tile[64];
  int t = threadIdx.x, lane = t % 32;
  tile[t] = x[t];
  __syncwarp();
  for (int o = 1; o < 32; o *= 2) {
    float before = lane >= o ? tile[t - o] : 0;
    __syncwarp();
    tile[t] += before;
    __syncwarp();
  }
  y[t] = tile[t];
  if (lane < 8) {
    tile[t] = lane;
    __syncwarp(0xff);
    y[t] += tile[t ^ 1];
  }
}
// Blocks take work from a counter.
__global__ void queue(const float* x, float* y, unsigned* next, int n) {
  __shared__ unsigned taken;
  for (;;) {
    __syncthreads();
    if (threadIdx.x == 0) taken = atomicAdd(next, 1u);
    __syncthreads();
    unsigned at = taken * 32;
    if (at >= n) return;
    y[at + threadIdx.x] = x[at + threadIdx.x];
  }
}
// Every thread fences what it wrote, one counts for all.
__global__ void fenced_by_all(const float* x, float* part, unsigned* count, float* y, int n) {
  __shared__ bool is_last;
  int i = blockIdx.x * 64 + threadIdx.x;
  part[i] = 2 * x[i];
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) is_last = atomicInc(count, gridDim.x - 1) == gridDim.x - 1;
  __syncthreads();
  if (!is_last) return;
  float sum = 0;
  for (int j = threadIdx.x; j < n; j += 64) sum += part[j];
  y[threadIdx.x] = sum;
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
        Call("two_buffers", 1, 64, {"x": floats(64), "y": floats(64)}, fresh=("y",)),
        Call("warp_scan", 1, 64, {"x": floats(64), "y": floats(64)}, fresh=("y",)),
        Call("queue", 3, 32, {"x": floats(320), "y": floats(320), "next": zero, "n": np.int32(320)}),
        Call(
            "fenced_by_all",
            5,
            64,
            {"x": floats(320), "part": floats(320), "count": zero, "y": floats(64), "n": np.int32(320)},
            fresh=("part", "y"),
        ),
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
    "a barrier between two steps": ("two_buffers", "+ 1;\n    __syncthreads();", "+ 1;"),
    "the barrier of a few lanes": ("warp_scan", "    __syncwarp(0xff);\n", ""),
    "the barrier ahead of the next turn": (
        "queue",
        "    __syncthreads();\n    if (threadIdx.x == 0) taken",
        "    if (threadIdx.x == 0) taken",
    ),
    "the fence of all": ("fenced_by_all", "  __threadfence();\n  __syncthreads();", "  __syncthreads();"),
    "the fence of a lock": ("lock", "    __threadfence();\n    atomicExch", "    atomicExch"),
}


@pytest.mark.parametrize("lost", BROKEN)
def test_an_honest_kernel_without_its_order_has_a_race(lost):
    kernel, before, after = BROKEN[lost]
    assert HONEST.count(before) == 1
    run = check(HONEST.replace(before, after), *(c for c in honest_calls() if c.kernel == kernel))
    assert "data_race" in {f.outcome for f in run.findings}
    assert {f.kernel for f in run.findings} == {kernel}
