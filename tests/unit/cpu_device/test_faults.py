"""Every way in which a run can end badly, and what is said of it."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from llmkernel.devices.base import ExecutionOptions, Fault

from .support import DEVICE, image_of, make_plan, run

QUICK = ExecutionOptions(timeout_seconds=0.5)


def fault_of(
    source: str, *arguments: object, block: object = 32, grid: object = 1, **options: object
) -> Fault:
    """The fault of a kernel named k."""
    return run(source, "k", grid, block, *arguments, **options).fault


def test_reading_past_the_end_names_argument_element_thread_and_line() -> None:
    source = """
    __global__ void k(const float* x, float* y, int n) {
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      y[i % 4] =
          x[i];
    }"""
    fault = fault_of(
        source, np.zeros(512, np.float32), np.zeros(4, np.float32), np.int32(0), grid=3, block=(256, 2)
    )
    assert fault.kind == "illegal_address"
    assert fault.kernel == "k"
    details = fault.details
    assert (details["argument"], details["element"], details["size"]) == ("a0", 512, 512)
    assert details["line"] in (5, 6)
    assert (details["block"], details["thread"]) == ([2, 0, 0], [0, 0, 0])
    assert details["launch_line"] == 1


def test_writing_before_the_beginning_and_far_away() -> None:
    source = "__global__ void k(int* x, long long at) { x[at] = 1; }"
    before = fault_of(source, np.zeros(4, np.int32), np.int64(-5000))
    assert (before.kind, before.details["argument"], before.details["element"]) == (
        "illegal_address",
        "a0",
        -5000,
    )
    far = fault_of(source, np.zeros(4, np.int32), np.int64(2**40))
    assert far.kind == "illegal_address"


def test_writing_just_past_the_end_of_a_buffer_that_ends_off_alignment() -> None:
    source = "__global__ void k(signed char* x, int at) { x[at] = 1; }"
    fault = fault_of(source, np.zeros(5, np.int8), np.int32(5))
    assert (fault.kind, fault.details["argument"], fault.details["element"]) == ("illegal_address", "a0", 5)


@pytest.mark.parametrize("misalign", [0, 8])
@pytest.mark.parametrize("nbytes", [4, 100, 256, 4096, 5000])
def test_payloads_are_aligned_and_their_ends_are_near_unmapped_memory(misalign: int, nbytes: int) -> None:
    source = """
    __global__ void k(const unsigned char* x, unsigned long long* out, int n) {
      out[0] = (unsigned long long)x;
      out[1] = x[n - 1];
    }"""
    x = np.full(nbytes, 7, np.uint8)
    done = run(source, "k", 1, 1, x, np.zeros(2, np.uint64), np.int32(nbytes), misalign=misalign)
    address, last = (int(v) for v in done.arrays[1])
    assert last == 7
    assert address % 256 == misalign
    assert -(address + nbytes) % 4096 < 256


def test_null_pointers() -> None:
    fault = fault_of(
        "__global__ void k(int* x) { int* p = x[0] ? x : (int*)8; *p = 1; }", np.zeros(1, np.int32)
    )
    assert fault.kind == "illegal_address"
    assert "null" in fault.message


@pytest.mark.parametrize(
    ("statement", "alignment", "element"),
    [
        ("float4 v = *reinterpret_cast<const float4*>(x + 5); y[0] = v.x + v.w;", 16, 5),
        ("float2 v = ((const float2*)(x + 1))[t]; y[t] = v.y;", 8, 1),
        ("y[0] = ((const int4*)(x + 2))[0].z;", 16, 2),
        ("*(float2*)(y + 3) = make_float2(1, 2);", 8, 3),
        ("y[0] = __ldg((const float2*)(x + 7)).x;", 8, 7),
        ("y[0] = *(const double*)(x + 9);", 8, 9),
    ],
)
def test_misaligned_accesses_name_type_element_and_line(statement: str, alignment: int, element: int) -> None:
    source = f"""
    __global__ void k(const float* x, float* y) {{
      int t = threadIdx.x;
      {statement}
    }}"""
    fault = fault_of(source, np.zeros(256, np.float32), np.zeros(256, np.float32))
    details = fault.details
    assert (fault.kind, details["alignment"], details["element"]) == (
        "misaligned_address",
        alignment,
        element,
    )
    assert (details["argument"], details["line"]) == ("a1" if "make" in statement else "a0", 4)
    assert details["thread"] == [0, 0, 0]


def test_traps_and_assertions_carry_their_line() -> None:
    source = """
    #include <cassert>
    __global__ void k(int* x) {
      if (threadIdx.x == 9) {
        assert(x[0] == 1 && "must hold");
      }
    }"""
    fault = fault_of(source, np.zeros(1, np.int32))
    assert (fault.kind, fault.details["line"], fault.details["thread"]) == ("trap", 5, [9, 0, 0])
    assert "x[0] == 1" in fault.message
    fault = fault_of("\n\n__global__ void k(int* x) { if (!x[0]) __trap(); }", np.zeros(1, np.int32))
    assert (fault.kind, fault.details["line"]) == ("trap", 3)


def test_division_by_zero() -> None:
    fault = fault_of("__global__ void k(int* x) {\n x[0] = 7 / x[0]; }", np.zeros(1, np.int32))
    assert (fault.kind, fault.details["line"]) == ("trap", 2)
    assert "zero" in fault.message


def test_endless_loops_are_ended_and_say_where() -> None:
    source = """
    __global__ void k(volatile int* x) {
      while (x[0] == 0) {}
    }"""
    fault = fault_of(source, np.zeros(1, np.int32), grid=2, options=QUICK)
    assert fault.kind == "timeout"
    assert fault.details["line"] == 3
    assert "0 of 2 blocks" in fault.message


def test_a_kernel_that_waits_for_a_block_that_never_runs() -> None:
    source = """
    __global__ void k(unsigned* gate) {
      atomicAdd(gate, 1u);
      while (atomicAdd(gate, 0u) < gridDim.x) {}
    }"""
    n = DEVICE.limits().num_sms + 1
    assert fault_of(source, np.zeros(1, np.uint32), grid=n, block=1, options=QUICK).kind == "timeout"


def test_threads_at_different_barriers() -> None:
    source = """
    __global__ void k(int* x) {
      if (threadIdx.x < 32) {
        __syncthreads();
      } else {
        __syncthreads();
      }
    }"""
    fault = fault_of(source, np.zeros(1, np.int32), block=64)
    assert fault.kind == "invalid_synchronization"
    assert {fault.details["line"], fault.details["other_line"]} == {4, 6}


def test_a_barrier_that_some_threads_of_a_warp_do_not_reach() -> None:
    source = """
    __global__ void k(int* x) {
      if (threadIdx.x < 16)
        __syncthreads();
      else
        x[0] = __shfl_sync(0xffffffff, 1, 0);
    }"""
    fault = fault_of(source, np.zeros(1, np.int32))
    assert fault.kind == "deadlock"
    assert (fault.details["at_barrier"], fault.details["at_collective"]) == (16, 16)
    assert (fault.details["line"], fault.details["other_line"]) == (4, 6)


def test_lanes_in_different_collectives_and_outside_their_mask() -> None:
    source = """
    __global__ void k(int* x) {
      int v;
      if (threadIdx.x & 1) v = __shfl_sync(0xffffffff, 1, 0);
      else v = __ballot_sync(0xffffffff, 1);
      x[0] = v;
    }"""
    assert fault_of(source, np.zeros(1, np.int32)).kind == "invalid_synchronization"
    source = "__global__ void k(int* x) { x[threadIdx.x] = __shfl_down_sync(0xffff, 1, 1); }"
    fault = fault_of(source, np.zeros(32, np.int32))
    assert (fault.kind, fault.details["thread"]) == ("invalid_synchronization", [16, 0, 0])


def test_stack_overflow() -> None:
    source = """
    __device__ int deep(int n, volatile int* x) {
      volatile int local[64];
      local[n & 63] = n;
      return n == 0 ? x[0] : deep(n - 1, x) + local[n & 63];
    }
    __global__ void k(int* x) { x[0] = deep(1000000, x); }"""
    assert fault_of(source, np.zeros(1, np.int32), block=1).kind == "stack_overflow"


def test_an_exhausted_heap() -> None:
    source = """
    __global__ void k(int* x) {
      for (int i = 0; i < 1000; i++) { volatile char* p = (char*)malloc(64 << 20); p[0] = 1; x[0] = i; }
    }"""
    assert fault_of(source, np.zeros(1, np.int32), block=1).kind == "out_of_memory"


def test_variables_larger_than_memory() -> None:
    source = "__device__ char big[1ull << 40]; __global__ void k(int* x) { x[0] = big[x[0]]; }"
    assert fault_of(source, np.zeros(1, np.int32), block=1).kind == "out_of_memory"


def test_overrunning_dynamic_shared_memory() -> None:
    source = "__global__ void k(int n) { extern __shared__ int s[]; s[n] = 1; }"
    fault = fault_of(source, np.int32(64), block=1, shared=256)
    assert (fault.kind, fault.details["memory"], fault.details["byte_offset"]) == (
        "illegal_address",
        "shared",
        0,
    )
    assert run(source, "k", 1, 1, np.int32(63), shared=256).execution.fault is None


def test_shared_memory_is_dirty_and_the_dirt_follows_the_seed() -> None:
    source = """
    __global__ void k(unsigned* out) {
      extern __shared__ unsigned d[];
      __shared__ unsigned s[16];
      if (out[0] == 12345) s[threadIdx.x] = 0;
      out[threadIdx.x] = s[threadIdx.x];
      out[16 + threadIdx.x] = d[threadIdx.x];
    }"""

    def seen(seed: int, *, dirties: bool = True) -> list[int]:
        options = ExecutionOptions(timeout_seconds=10, seed=seed, dirties_shared=dirties)
        done = run(source, "k", 1, 16, np.zeros(32, np.uint32), shared=64, options=options)
        return done.arrays[0].tolist()

    assert seen(1) == seen(1)
    assert seen(1) != seen(2)
    assert 0 not in seen(1)
    assert not any(seen(1, dirties=False))


def test_a_fault_in_a_later_run_keeps_the_earlier_ones() -> None:
    module = DEVICE.compile(
        "__device__ int n; __global__ void k(int* x) { if (++n == 2) __trap(); x[0] = n; }", ["k"]
    )
    plan, arrays = make_plan("k", 1, 1, (np.zeros(1, np.int32),))
    runs = [{"a0": image_of(arrays["a0"])} for _ in range(3)]
    executions = DEVICE.execute_many(module, plan, runs, ExecutionOptions(timeout_seconds=10))
    assert [e.fault and e.fault.kind for e in executions] == [None, "trap"]
    assert runs[0]["a0"].payload.view(np.int32)[0] == 1


def test_buffers_larger_than_memory() -> None:
    module = DEVICE.compile("__global__ void k(char* x) { x[0] = 1; }", ["k"])
    plan, _ = make_plan("k", 1, 1, (np.zeros(1, np.int8),))
    huge = image_of(np.zeros(1, np.int8))
    huge.data = np.lib.stride_tricks.as_strided(huge.data, (2**60,), (0,))
    (execution,) = DEVICE.execute_many(module, plan, [{"a0": huge}], ExecutionOptions())
    assert execution.fault is not None
    assert execution.fault.kind == "out_of_memory"


def test_an_interrupt_leaves_no_process_behind() -> None:
    script = """
    import os, signal, sys, threading, time
    sys.path.insert(0, sys.argv[1])
    import numpy as np
    from tests.unit.cpu_device.support import run
    from llmkernel.devices.base import ExecutionOptions

    def children():
        me = str(os.getpid())
        found = []
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                try:
                    stat = open(f"/proc/{entry}/stat").read().rsplit(")", 1)
                except OSError:
                    continue
                if stat[1].split()[1] == me:
                    found.append(stat[0])
        return found

    def interrupt():
        while not any("runner" in c for c in children()):
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    source = "__global__ void k(volatile int* x) { while (!x[0]) {} }"
    threading.Thread(target=interrupt, daemon=True).start()
    try:
        run(source, "k", 1, 1, np.zeros(1, np.int32), options=ExecutionOptions(timeout_seconds=30))
    except KeyboardInterrupt:
        print("interrupted", children())
    """
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), str(root)], capture_output=True, text=True, timeout=60,
        cwd=root, check=False,
        env=os.environ,
    )  # fmt: skip
    assert done.stdout.strip() == "interrupted []", done.stderr


def test_lines_of_headers_are_not_taken_for_the_source() -> None:
    source = """
    #include "llmkernel.cuh"
    __global__ void k(float* x) {
      if (threadIdx.x < 32) x[0] = llmkernel::block_sum(1.0f);
      else { __syncthreads(); __syncthreads(); }
    }"""
    fault = fault_of(source, np.zeros(1, np.float32), block=64)
    assert fault.kind == "invalid_synchronization"
    assert [fault.details.get(name) for name in ("line", "other_line")].count(5) == 1
    assert "of a header" in fault.message


def test_a_fault_in_an_inlined_header_function_has_the_line_of_its_call() -> None:
    source = """
    #include "llmkernel.cuh"
    __global__ void k(const float* x, float* y) {
      y[0] = 1;
      auto v = llmkernel::load_vector<4>(x + 4096);
      y[1] = v[0];
    }"""
    fault = fault_of(source, np.zeros(4, np.float32), np.zeros(2, np.float32), block=1)
    assert (fault.kind, fault.details["element"]) == ("illegal_address", 4096)
    assert fault.details["line"] in (4, 5, 6)


def test_what_lies_around_buffers_and_shared_memory_differs_from_run_to_run() -> None:
    source = """
    __global__ void k(const unsigned char* x, unsigned char* seen) {
      extern __shared__ unsigned char dynamic[];
      volatile const unsigned char* outside = x;
      for (int i = 0; i < 16; i++) seen[i] = outside[5 + i], seen[16 + i] = ((volatile unsigned char*)dynamic)[8 + i];
    }"""
    arguments = (np.zeros(5, np.uint8), np.zeros(32, np.uint8))
    first, second = (run(source, "k", 1, 1, *arguments, shared=8).arrays[1] for _ in range(2))
    assert (first[:16] != second[:16]).any()
    assert (first[16:] != second[16:]).any()
