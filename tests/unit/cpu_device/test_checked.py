"""Checked mode: each class of finding with its line, thread, block and element.

A compilation costs more than a run, so many kernels share a source and a plan; what was found is told apart by kernel.
"""

from __future__ import annotations

import shutil
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llmkernel.devices.cpu.build import build
from llmkernel.devices.cpu.checked import CheckedFinding
from llmkernel.devices.cpu.findings import FindingReader
from llmkernel.devices.cpu.memory import BufferFile
from llmkernel.devices.cpu.process import Report
from llmkernel.devices.plan import Buffer, LaunchPlan

from .checked_support import Call, check, floats
from .support import image_of

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


@settings(max_examples=50)
@given(st.data())
def test_any_report_is_read(data):
    # The process could write what it likes.
    number = st.integers(0, 2**32 - 1)
    wide = st.integers(0, 2**64 - 1)
    triples = st.tuples(number, number, number)
    kinds = {"int": number, "bool": st.booleans(), "float": st.floats(), "str": st.text(max_size=9)}
    values = {
        f.name: data.draw(triples if f.type.startswith("tuple") else kinds[f.type]) for f in fields(Report)
    }
    values |= {"type": data.draw(st.integers(0, 20)), "address": data.draw(wide), "size": data.draw(wide)}
    plan = LaunchPlan((Buffer("x", "float32", (4,), "inout"),), (), ())
    library = build("__global__ void k() {}", ["k"], is_checked=True).library.read_bytes()
    with BufferFile(plan, [{"x": image_of(floats(4))}]) as buffers:
        parts = FindingReader(plan, buffers, library).read(Report(**values))
    assert (parts is not None) == (values["type"] in (13, 14, 15, 16, 17))


@pytest.mark.parametrize("compiler", ["g++", "clang++", "zig"])
def test_every_compiler_lets_the_same_be_seen(compiler, monkeypatch):
    if compiler != "zig" and not shutil.which(compiler):
        pytest.skip(f"{compiler} is not installed")
    monkeypatch.setenv("LLMKERNEL_CXX", compiler)
    source = """
    __global__ void race(const float* x, float* y) {
      __shared__ float tile[32], next[32];
      tile[threadIdx.x] = x[threadIdx.x];
      y[threadIdx.x] = tile[threadIdx.x ^ 1];
      if (threadIdx.x == 31) tile[threadIdx.x + 1] = 0;
      next[threadIdx.x] = 0;
    }
    __global__ void copy(const float* x, float* y) {
      float4 v = *reinterpret_cast<const float4*>(x + 2);
      y[0] = v.x + v.w;
    }"""
    arrays = {"x": floats(32), "y": floats(32)}
    run = check(source, Call("race", 1, 32, arrays), Call("copy", 1, 32, arrays))
    assert {(f.kernel, f.outcome, f.details["line"], f.details["element"]) for f in run.findings} == {
        ("race", "data_race", 4, 1),
        ("race", "out_of_bounds", 6, 32),
        ("copy", "crashed", 10, 2),
    }
