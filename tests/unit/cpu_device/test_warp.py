"""Warp collectives, cooperative groups and wmma against NumPy."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from llmkernel.devices.base import ExecutionOptions

from .support import results

RANDOM = np.random.default_rng(11)


@pytest.mark.parametrize(
    ("dtype", "cxx"),
    [
        ("int8", "signed char"),
        ("uint16", "unsigned short"),
        ("int32", "int"),
        ("float32", "float"),
        ("int64", "long long"),
        ("float64", "double"),
    ],
)
@pytest.mark.parametrize("order", ["forward", "reverse", "random"])
def test_shuffles(dtype: str, cxx: str, order: str) -> None:
    source = f"""
    __global__ void shuffles(const {cxx}* x, {cxx}* out) {{
      {cxx} v = x[threadIdx.x];
      {cxx}* row = out + threadIdx.x * 5;
      row[0] = __shfl_sync(0xffffffff, v, 3);
      row[1] = __shfl_up_sync(0xffffffff, v, 2);
      row[2] = __shfl_down_sync(0xffffffff, v, 5, 16);
      row[3] = __shfl_xor_sync(0xffffffff, v, 9);
      row[4] = __shfl_sync(0xffffffff, v, threadIdx.x + 1, 8);
    }}"""
    x = RANDOM.integers(0, 100, 64).astype(dtype)
    options = ExecutionOptions(timeout_seconds=10, thread_order=order, seed=3)
    _, out = results(source, "shuffles", 1, 64, x, np.zeros((64, 5), dtype), options=options)
    lane, base = np.arange(64) % 32, np.arange(64) // 32 * 32
    sources = [
        np.full(64, 3),
        np.where(lane >= 2, lane - 2, lane),
        np.where(lane % 16 + 5 < 16, lane + 5, lane),
        lane ^ 9,
        lane // 8 * 8 + (lane + 1) % 8,
    ]
    assert (out == np.stack([x[base + s] for s in sources], 1)).all()


def test_votes_matches_and_reductions() -> None:
    source = """
    __global__ void votes(const int* x, unsigned* out, int* signed_out) {
      int v = x[threadIdx.x], all_same;
      unsigned* row = out + threadIdx.x * 12;
      row[0] = __ballot_sync(~0u, v > 0);
      row[1] = __any_sync(~0u, v > 4);
      row[2] = __all_sync(~0u, v > -6);
      row[3] = __match_any_sync(~0u, v);
      row[4] = __match_all_sync(~0u, v, &all_same);
      row[5] = all_same;
      row[6] = __reduce_add_sync(~0u, (unsigned)v);
      row[7] = __reduce_and_sync(~0u, (unsigned)v);
      row[8] = __reduce_or_sync(~0u, (unsigned)v);
      row[9] = __reduce_xor_sync(~0u, (unsigned)v);
      row[10] = __reduce_max_sync(~0u, (unsigned)v);
      row[11] = __activemask();
      signed_out[threadIdx.x * 2] = __reduce_min_sync(~0u, v);
      signed_out[threadIdx.x * 2 + 1] = __reduce_max_sync(~0u, v);
    }"""
    x = RANDOM.integers(-5, 5, 32).astype(np.int32)
    _, out, signed = results(
        source, "votes", 1, 32, x, np.zeros((32, 12), np.uint32), np.zeros((32, 2), np.int32)
    )
    u = x.view(np.uint32)
    mask = sum(1 << i for i in range(32) if x[i] > 0)
    expected = [mask, int((x > 4).any()), 1, None, 0, 0, u.sum(dtype=np.uint32), np.bitwise_and.reduce(u),
                np.bitwise_or.reduce(u), np.bitwise_xor.reduce(u), u.max(), 0xFFFFFFFF]  # fmt: skip
    for column, value in enumerate(expected):
        if value is not None:
            assert (out[:, column] == value).all(), column
    assert list(out[:, 3]) == [sum(1 << j for j in range(32) if x[j] == v) for v in x]
    assert (signed == [x.min(), x.max()]).all()


def test_collectives_of_part_of_a_warp_and_divergent_active_masks() -> None:
    source = """
    __global__ void part(int* out) {
      int lane = threadIdx.x;
      if (lane < 12) {
        unsigned m = __activemask();
        out[lane] = __popc(m) * 100 + __shfl_sync(m, lane, 5);
      } else {
        unsigned m = __activemask();
        out[lane] = __popc(m) * 100 + __shfl_sync(m, lane, 31);
      }
      __syncwarp();
      if (lane % 2) out[lane] += __reduce_add_sync(0xAAAAAAAAu, 1000);
    }"""
    (out,) = results(source, "part", 1, 32, np.zeros(32, np.int32))
    lane = np.arange(32)
    assert (out == np.where(lane < 12, 1205, 2031) + np.where(lane % 2, 16000, 0)).all()


def test_block_votes() -> None:
    source = """
    __global__ void block_votes(const int* x, int* out) {
      int v = x[threadIdx.x];
      int count = __syncthreads_count(v > 2);
      int all = __syncthreads_and(v >= 0);
      int any = __syncthreads_or(v == 9);
      out[threadIdx.x] = count * 100 + all * 10 + any;
    }"""
    x = RANDOM.integers(0, 9, 96).astype(np.int32)
    _, out = results(source, "block_votes", 1, 96, x, np.zeros(96, np.int32))
    assert (out == (x > 2).sum() * 100 + 10).all()


@pytest.mark.parametrize("size", [1, 2, 4, 8, 16, 32])
def test_cooperative_group_tiles(size: int) -> None:
    source = f"""
    #include <cooperative_groups.h>
    #include <cooperative_groups/reduce.h>
    #include <cooperative_groups/scan.h>
    namespace cg = cooperative_groups;
    struct Pair {{ double value; long long index; }};
    struct Larger {{ __device__ Pair operator()(Pair a, Pair b) const {{ return a.value >= b.value ? a : b; }} }};
    __global__ void tiles(const int* x, int* out) {{
      cg::thread_block block = cg::this_thread_block();
      auto tile = cg::tiled_partition<{size}>(block);
      int r = block.thread_rank(), v = x[r];
      int* row = out + r * 7;
      row[0] = cg::reduce(tile, v, cg::plus<int>());
      row[1] = cg::reduce(tile, v, cg::less<int>());
      row[2] = cg::inclusive_scan(tile, v, cg::plus<int>());
      row[3] = cg::exclusive_scan(tile, v);
      row[4] = tile.shfl(v, 0) + tile.meta_group_rank() * 1000;
      row[5] = tile.ballot(v & 1);
      Pair best = cg::reduce(tile, Pair{{(double)v, r}}, Larger());
      row[6] = (int)best.index;
      tile.sync();
      block.sync();
    }}"""
    x = RANDOM.permutation(64).astype(np.int32)
    _, out = results(source, "tiles", 1, (16, 4), x, np.zeros((64, 7), np.int32))
    groups = x.reshape(-1, size)

    def spread(values: np.ndarray) -> np.ndarray:
        return np.repeat(values, size)

    assert (out[:, 0] == spread(groups.sum(1))).all()
    assert (out[:, 1] == spread(groups.min(1))).all()
    assert (out[:, 2] == groups.cumsum(1).reshape(-1)).all()
    assert (out[:, 3] == (groups.cumsum(1) - groups).reshape(-1)).all()
    assert (out[:, 4] == spread(groups[:, 0] + np.arange(len(groups)) * 1000)).all()
    ballots = (groups & 1) << np.arange(size)
    assert (out[:, 5].view(np.uint32) == spread(ballots.sum(1)).astype(np.uint32)).all()
    assert (out[:, 6] == spread(groups.argmax(1) + np.arange(len(groups)) * size)).all()


@pytest.mark.parametrize("kind", ["half", "__nv_bfloat16", "wmma::precision::tf32"])
@pytest.mark.parametrize("layout", ["row_major", "col_major"])
def test_wmma(kind: str, layout: str) -> None:
    k = 8 if "tf32" in kind else 16
    source = f"""
    #include <mma.h>
    using namespace nvcuda;
    typedef typename wmma::fragment<wmma::matrix_a, 16, 16, {k}, {kind}, wmma::row_major>::storage_element_type E;
    __global__ void product(const E* a, const E* b, float* c, int n) {{
      wmma::fragment<wmma::matrix_a, 16, 16, {k}, {kind}, wmma::row_major> fa;
      wmma::fragment<wmma::matrix_b, 16, 16, {k}, {kind}, wmma::{layout}> fb;
      wmma::fragment<wmma::accumulator, 16, 16, {k}, float> acc;
      wmma::fill_fragment(acc, 0.0f);
      for (int i = 0; i < n; i += {k}) {{
        wmma::load_matrix_sync(fa, a + i, n);
        wmma::load_matrix_sync(fb, {"b + i * 16, 16" if layout == "row_major" else "b + i, n"});
        wmma::mma_sync(acc, fa, fb, acc);
      }}
      for (int i = 0; i < acc.num_elements; i++) acc.x[i] *= 2.0f;
      wmma::store_matrix_sync(c, acc, 16, wmma::mem_row_major);
    }}"""
    dtype = {"half": np.dtype(np.float16), "__nv_bfloat16": np.dtype(ml_dtypes.bfloat16)}.get(
        kind, np.dtype(np.float32)
    )
    a, b = (RANDOM.integers(-8, 8, shape).astype(dtype) for shape in ((16, 64), (64, 16)))
    stored = b if layout == "row_major" else np.ascontiguousarray(b.T)
    *_, c = results(source, "product", 1, 32, a, stored, np.zeros((16, 16), np.float32), np.int32(64))
    assert (c == 2 * (a.astype(np.float32) @ b.astype(np.float32))).all()


def test_pipeline_copies() -> None:
    source = """
    #include <cuda_pipeline.h>
    __global__ void staged(const float4* x, float4* y) {
      __shared__ float4 s[64];
      __pipeline_memcpy_async(&s[threadIdx.x], &x[threadIdx.x], sizeof(float4));
      __pipeline_commit();
      __pipeline_wait_prior(0);
      __syncthreads();
      y[threadIdx.x] = s[63 - threadIdx.x];
    }"""
    x = RANDOM.random((64, 4), np.float32)
    _, y = results(source, "staged", 1, 64, x, x * 0)
    assert (y == x[::-1]).all()


def test_tiles_as_parameters_and_tiles_of_tiles() -> None:
    source = """
    #include <cooperative_groups.h>
    namespace cg = cooperative_groups;
    __device__ int total(cg::thread_block_tile<8> tile, int v) {
      for (int d = tile.size() / 2; d > 0; d /= 2) v += tile.shfl_down(v, d);
      return tile.shfl(v, 0);
    }
    __global__ void k(int* x) {
      auto block = cg::this_thread_block();
      cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
      cg::thread_block_tile<8> eight = cg::tiled_partition<8>(warp);
      x[block.thread_rank()] = total(eight, x[block.thread_rank()]) * 10 + cg::tiled_partition<8>(warp).meta_group_rank();
      cg::sync(block);
    }"""
    x = RANDOM.integers(0, 50, 64).astype(np.int32)
    (after,) = results(source, "k", 1, 64, x)
    sums = x.reshape(-1, 8).sum(1)
    assert (after == np.repeat(sums * 10 + np.arange(8) % 4, 8)).all()
