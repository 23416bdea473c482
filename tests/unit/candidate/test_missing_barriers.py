"""Where a barrier seems to be missing, and where it does not."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmkernel.candidate.missing_barriers import missing_barriers

ROOT = Path(__file__).parents[3]
ROGUES = sorted((ROOT / "tests/rogues").glob("*.cu"))
LIBRARY = sorted((ROOT / "llmkernel/library").glob("*.cu"))
REDUCE = """__device__ float reduce(float v, float* slots) {
    for (int k = 16; k > 0; k /= 2) v += __shfl_xor_sync(0xffffffffu, v, k);
    if (threadIdx.x % 32 == 0) slots[threadIdx.x / 32] = v;
    __syncthreads();
    v = threadIdx.x % 32 < 4 ? slots[threadIdx.x % 32] : 0.0f;
    for (int k = 16; k > 0; k /= 2) v += __shfl_xor_sync(0xffffffffu, v, k);
    return v;
}
"""


def kernel(body, before=""):
    return f"{before}__global__ void f(const float* x, float* y, int N) {{\n{body}\n}}\n"


SHARED = "__shared__ float s[256]; int t = threadIdx.x;\n"
SUSPECT = {
    "write, then a neighbour": SHARED + "s[t] = x[t];\ny[t] = s[t + 1];",
    "read by all, then overwritten": SHARED + "s[t] = x[t]; __syncthreads(); float top = s[0];\ns[t] = top;",
    "a loop without a barrier at its end": SHARED
    + "for (int i = 0; i < N; ++i) { s[t] = x[i];\n__syncthreads(); y[i] += s[t ^ 1]; }",
    "one thread's total": "__shared__ float total;\nif (threadIdx.x == 0) total = x[0];\ny[threadIdx.x] = total;",
    "zeroed by one thread, then added to": "__shared__ int bins[32];\nif (threadIdx.x == 0) bins[0] = 0;\n"
    "atomicAdd(&bins[threadIdx.x % 32], 1);",
    "added to, then read": "__shared__ int bins[32]; bins[threadIdx.x] = 0; __syncthreads();\n"
    "atomicAdd(&bins[(int)x[threadIdx.x]], 1);\ny[threadIdx.x] = bins[threadIdx.x];",
    "a barrier on one side only": SHARED
    + "s[t] = x[t];\nif (N > 3) __syncthreads(); else y[0] = 1;\ny[t] = s[255 - t];",
    "dynamic": "extern __shared__ float s[]; s[threadIdx.x] = x[threadIdx.x];\ny[threadIdx.x] = s[N - threadIdx.x];",
    "behind a name": "extern __shared__ char raw[]; float* s = (float*)raw; int t = threadIdx.x; "
    "s[t] = x[t];\ny[t] = s[t + 1];",
    "two dimensions": "__shared__ float tile[32][33]; tile[threadIdx.y][threadIdx.x] = x[threadIdx.x];\n"
    "y[threadIdx.x] = tile[threadIdx.x][threadIdx.y];",
}
CLEAN = {
    "a barrier": SHARED + "s[t] = x[t]; __syncthreads(); y[t] = s[t + 1];",
    "its own element": SHARED + "s[t] = x[t]; s[t] *= 2; y[t] = s[t];",
    "its own elements, in a loop": SHARED
    + "for (int i = t; i < N; i += 64) s[i] = x[i]; for (int i = t; i < N; i += 64) y[i] = s[i];",
    "a tree": SHARED
    + "s[t] = x[t]; __syncthreads(); "
    "for (int k = 128; k > 0; k >>= 1) { if (t < k) s[t] += s[t + k]; __syncthreads(); } y[0] = s[0];",
    "two buffers that take turns": "__shared__ float s[2][64]; int t = threadIdx.x, turn = 0;"
    "for (int i = 0; i < N; ++i) { s[turn][t] = x[i]; __syncthreads(); y[i] = s[turn][63 - t]; turn ^= 1; }",
    "one thread alone": SHARED + "if (t == 0) { s[0] = x[0]; s[1] = s[0] + x[1]; y[0] = s[0] + s[1]; }",
    "two parts": SHARED + "s[0] = x[0]; y[t] = s[1];",
    "one warp that shuffles": SHARED
    + "s[t] = x[t]; __syncthreads(); if (t < 32) { float v = s[t] + s[t + 32]; "
    "v += __shfl_xor_sync(0xffffffffu, v, 1); if (t == 0) s[0] = v; } __syncthreads(); y[t] = s[0];",
    "cooperative groups": "namespace cg = cooperative_groups; auto block = cg::this_thread_block(); " + SHARED
    + "s[t] = x[t]; block.sync(); y[t] = s[t + 1];",
    "atomics alone": "__shared__ int bins[8]; atomicAdd(&bins[0], 1); atomicAdd(&bins[threadIdx.x], 1);",
    "no shared memory": "y[threadIdx.x] = x[threadIdx.x]; y[0] = x[1];",
    "assembly that may be a barrier": SHARED + 's[t] = x[t]; asm volatile("bar.sync 0;"); y[t] = s[t + 1];',
}  # fmt: skip


@pytest.mark.parametrize("body", SUSPECT.values(), ids=SUSPECT.keys())
def test_accesses_without_a_barrier_are_suspected(body):
    first, *_ = missing_barriers(kernel(body))
    assert first.kernel == "f"
    assert 2 <= first.first_line <= first.second_line + 1
    assert "no barrier between" in str(first)
    assert f"line {first.first_line}" in str(first)


@pytest.mark.parametrize("body", CLEAN.values(), ids=CLEAN.keys())
def test_accesses_in_order_are_not(body):
    assert missing_barriers(kernel(body)) == ()


def test_a_function_is_followed_where_it_is_called():
    twice = "__shared__ float s[4]; float a = reduce(x[0], s);\ny[0] = reduce(a, s);"
    (found,) = missing_barriers(kernel(twice, REDUCE))
    assert (found.array, found.first_line, found.second_line) == ("s", 5, 3)
    apart = "__shared__ float s[2][4]; float a = reduce(x[0], s[0]);\ny[0] = reduce(a, s[1]);"
    assert missing_barriers(kernel(apart, REDUCE)) == ()
    between = "__shared__ float s[4]; float a = reduce(x[0], s); __syncthreads();\ny[0] = reduce(a, s);"
    assert missing_barriers(kernel(between, REDUCE)) == ()


def test_no_honest_kernel_and_no_kernel_of_the_library_is_suspected():
    honest = [p for p in ROGUES if p.name.startswith("honest")]
    suspected = [p.name for p in (*honest, *LIBRARY) if missing_barriers(p.read_text())]
    assert suspected == []
    assert len(honest) > 80


def test_every_missing_barrier_of_the_gallery_is_suspected():
    planted = [p for p in ROGUES if "barrier" in p.name or "reused" in p.name or "twice" in p.name]
    planted = [p for p in planted if "needs=racecheck" in p.read_text().partition("\n")[0]]
    assert len(planted) >= 7
    assert [p.name for p in planted if not missing_barriers(p.read_text())] == []


@given(st.lists(st.sampled_from([*"(){}[]<>;,=+-*&!?:", "if", "for", "do", "while", "s", "int", "__shared__", "float",
       "threadIdx", ".", "x", "__syncthreads", "return", "case", "template", "1", "0x", '"'])))  # fmt: skip
def test_any_text_is_followed(words):
    missing_barriers(kernel(SHARED + " ".join(words)))
