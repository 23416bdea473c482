"""What CUDA C++ itself promises: grids, shared memory, templates, structs, variables, atomics, printf."""

from __future__ import annotations

import numpy as np
import pytest

from llmkernel.devices.base import ExecutionOptions
from llmkernel.errors import CompileError

from .support import DEVICE, image_of, make_plan, results, run

RANDOM = np.random.default_rng(7)


def test_grid_and_block_are_three_dimensional() -> None:
    source = """
    __global__ void where(int* out) {
      int bx = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
      int tx = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
      int threads = blockDim.x * blockDim.y * blockDim.z;
      out[bx * threads + tx] += bx * 1000 + tx;
    }"""
    (out,) = results(source, "where", (3, 2, 4), (4, 5, 2), np.zeros(24 * 40, np.int32))
    assert (out.reshape(24, 40) == np.arange(24)[:, None] * 1000 + np.arange(40)).all()


@pytest.mark.parametrize("order", ["forward", "reverse", "random"])
def test_static_and_dynamic_shared_memory_in_every_thread_order(order: str) -> None:
    source = """
    __shared__ float whole;                        // file scope
    template <typename T, int W>
    __global__ void __launch_bounds__(256) reduce(const T* x, T* sums, int n) {
      extern __shared__ __align__(16) unsigned char raw[];
      T* values = reinterpret_cast<T*>(raw);
      __shared__ T partial[W][2];
      T v = 0;
      #pragma unroll 4
      for (int i = threadIdx.x; i < n; i += blockDim.x) v += x[(size_t)blockIdx.x * n + i];
      values[threadIdx.x] = v;
      __syncthreads();
      if (threadIdx.x < W) {
        partial[threadIdx.x][0] = 0;
        for (int i = threadIdx.x; i < (int)blockDim.x; i += W) partial[threadIdx.x][0] += values[i];
      }
      __syncthreads();
      if (threadIdx.x == 0) {
        whole = 0;
        for (int i = 0; i < W; i++) whole += partial[i][0];
        sums[blockIdx.x] = whole;
      }
    }"""
    x = RANDOM.integers(-50, 50, (37, 1000)).astype(np.float32)
    options = ExecutionOptions(timeout_seconds=10, thread_order=order, seed=5)
    _, sums = results(
        source,
        "reduce<float, 8>",
        37,
        256,
        x,
        np.zeros(37, np.float32),
        np.int32(1000),
        shared=1024,
        options=options,
    )
    assert (sums == x.sum(1)).all()


def test_dynamic_shared_memory_at_file_scope_and_in_a_device_function() -> None:
    source = """
    extern __shared__ int pool[];
    __device__ int* lower() { extern __shared__ int pool[]; return pool; }
    __global__ void swap_halves(int* x) {
      lower()[threadIdx.x] = x[threadIdx.x];
      __syncthreads();
      x[threadIdx.x] = pool[(threadIdx.x + blockDim.x / 2) % blockDim.x];
    }"""
    (x,) = results(source, "swap_halves", 1, 64, np.arange(64, dtype=np.int32), shared=256)
    assert (x == np.roll(np.arange(64), 32)).all()


def test_large_dynamic_shared_memory() -> None:
    source = """
    __global__ void fill(int* sum, int n) {
      extern __shared__ int s[];
      for (int i = threadIdx.x; i < n; i += blockDim.x) s[i] = i;
      __syncthreads();
      if (threadIdx.x == 0) { int t = 0; for (int i = 0; i < n; i++) t ^= s[i]; sum[blockIdx.x] = t; }
    }"""
    words = 227 * 1024 // 4
    (out,) = results(source, "fill", 16, 128, np.zeros(16, np.int32), np.int32(words), shared=words * 4)
    assert (out == np.bitwise_xor.reduce(np.arange(words))).all()


def test_structs_constants_and_device_variables() -> None:
    source = """
    struct Affine { float scale, shift; __device__ float operator()(float v) const { return v * scale + shift; } };
    __constant__ float weights[4] = {1, 2, 4, 8};
    __constant__ Affine affine = {3.0f, -1.0f};
    __device__ int calls = 40;
    __device__ __forceinline__ float pick(int i) { return weights[i & 3]; }
    __global__ void apply(float* x, int* seen) {
      Affine local{2.0f, 0.0f};
      x[threadIdx.x] = affine(local(x[threadIdx.x])) + pick(threadIdx.x);
      if (atomicAdd(&calls, 1) == 40 + 31) *seen = calls;
    }"""
    x = RANDOM.integers(0, 9, 32).astype(np.float32)
    after, seen = results(source, "apply", 1, 32, x, np.zeros(1, np.int32))
    assert (after == 6 * x - 1 + np.array([1, 2, 4, 8] * 8)).all()
    assert seen[0] == 72


def test_device_variables_start_fresh_in_every_execution_and_live_through_execute_many() -> None:
    source = "__device__ int count; __global__ void step(int* out) { out[0] = ++count; }"
    module = DEVICE.compile(source, ["step"])
    plan, arrays = make_plan("step", 1, 1, (np.zeros(1, np.int32),))
    options = ExecutionOptions(timeout_seconds=10)

    def values(runs: list) -> list[int]:
        return [int(r["a0"].payload.view(np.int32)[0]) for r in runs]

    runs = [{"a0": image_of(arrays["a0"])} for _ in range(3)]
    for images in runs:
        assert DEVICE.execute(module, plan, images, options).fault is None
    assert values(runs) == [1, 1, 1]
    runs = [{"a0": image_of(arrays["a0"])} for _ in range(3)]
    assert [e.fault for e in DEVICE.execute_many(module, plan, runs, options)] == [None] * 3
    assert values(runs) == [1, 2, 3]


ADDABLE = {
    "int32": "int",
    "uint32": "unsigned",
    "uint64": "uint64_t",
    "float32": "float",
    "float64": "double",
}


@pytest.mark.parametrize("dtype", ADDABLE)
def test_atomic_add(dtype: str) -> None:
    source = f"""
    __global__ void tally(const {ADDABLE[dtype]}* x, {ADDABLE[dtype]}* out, int n) {{
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      if (i < n) atomicAdd(out, x[i]);
    }}"""
    x = RANDOM.integers(1, 100, 5000).astype(dtype)
    _, out = results(source, "tally", 20, 256, x, np.zeros(1, dtype), np.int32(5000))
    assert out[0] == x.sum()


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint64"])
def test_atomic_min_max_exchange_and_compare(dtype: str) -> None:
    cxx = {"int32": "int", "uint32": "unsigned", "int64": "long long", "uint64": "unsigned long long"}[dtype]
    swapped = cxx if dtype != "int64" else "unsigned long long"
    source = f"""
    __global__ void tally(const {cxx}* x, {cxx}* out, int n) {{
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      if (i >= n) return;
      atomicMin(&out[0], x[i]);
      atomicMax(&out[1], x[i]);
      {swapped}* target = ({swapped}*)&out[2];
      if (i == 7) atomicExch(target, ({swapped})x[i]);
      {swapped} seen = target[1], expected;
      do {{ expected = seen; seen = atomicCAS(&target[1], expected, expected + 2); }} while (seen != expected);
    }}"""
    x = RANDOM.integers(1, 100, 5000).astype(dtype)
    _, out = results(source, "tally", 20, 256, x, np.array([1000, 0, 0, 0], dtype), np.int32(5000))
    assert list(out) == [x.min(), x.max(), x[7], 10000]


def test_atomics_that_cuda_does_not_have_do_not_compile() -> None:
    for call in (
        "atomicMax((float*)x, 1.0f)",
        "atomicCAS((double*)x, 0.0, 1.0)",
        "atomicAdd((long long*)x, 1ll)",
    ):
        with pytest.raises(CompileError):
            DEVICE.compile(f"__global__ void k(void* x) {{ {call}; }}", ["k"])


def test_a_float_maximum_by_comparing_bits() -> None:
    source = """
    __device__ float atomic_max(float* address, float value) {
      int* bits = (int*)address; int old = *bits, expected;
      do { expected = old; old = atomicCAS(bits, expected, __float_as_int(fmaxf(value, __int_as_float(expected)))); }
      while (old != expected);
      return __int_as_float(old);
    }
    __global__ void k(const float* x, float* out) { atomic_max(out, x[blockIdx.x * blockDim.x + threadIdx.x]); }"""
    x = RANDOM.normal(size=1024).astype(np.float32)
    _, out = results(source, "k", 8, 128, x, np.full(1, -np.inf, np.float32))
    assert out[0] == x.max()


def test_atomic_bits_and_wrapping_counters() -> None:
    source = """
    __global__ void bits(unsigned* out) {
      unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
      atomicAnd(&out[0], ~(1u << (i % 7)));
      atomicOr(&out[1], 1u << (i % 11));
      atomicXor(&out[2], i);
      atomicInc(&out[3], 9u);
      atomicDec(&out[4], 6u);
      atomicSub(&out[5], 2u);
      atomicAdd_block(&out[6], 1u);
    }"""
    start = np.array([0xFFFFFFFF, 0, 0, 0, 0, 5000, 0], np.uint32)
    (out,) = results(source, "bits", 4, 256, start)
    ranks = np.arange(1024, dtype=np.uint32)
    assert list(out) == [
        0xFFFFFF80,
        0x7FF,
        np.bitwise_xor.reduce(ranks),
        1024 % 10,
        (-1024) % 7,
        5000 - 2048,
        1024,
    ]


def test_printf_is_captured_and_capped() -> None:
    source = r"""
    __global__ void say(int n) { for (int i = 0; i < n; i++) printf("block %d says %5.2f %s\n", blockIdx.x, 1.5, "hi"); }"""
    done = run(source, "say", 2, 1, np.int32(1))
    assert sorted(done.execution.printed.splitlines()) == ["block 0 says  1.50 hi", "block 1 says  1.50 hi"]
    done = run(source, "say", 2, 1, np.int32(20000))
    assert done.execution.fault is None
    assert len(done.execution.printed) == 64 * 1024


def test_early_return_beside_barriers() -> None:
    source = """
    __global__ void tail(float* x, int n) {
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      if (i >= n) return;
      __shared__ float s[128];
      s[threadIdx.x] = x[i];
      __syncthreads();
      x[i] = s[min(threadIdx.x + 1, min(blockDim.x, n - blockIdx.x * blockDim.x) - 1)];
    }"""
    x = np.arange(200, dtype=np.float32)
    (after,) = results(source, "tail", 2, 128, x, np.int32(200))
    expected = np.concatenate([np.r_[x[1:128], x[127]], np.r_[x[129:], x[199]]])
    assert (after == expected).all()


def test_last_block_finishes_a_reduction_over_the_grid() -> None:
    source = """
    __device__ unsigned arrived;
    __global__ void total(const float* x, float* partial, float* out, int n) {
      __shared__ bool is_last;
      float v = 0;
      for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) v += x[i];
      for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(~0u, v, o);
      if (threadIdx.x == 0) {
        partial[blockIdx.x] = v;
        __threadfence();
        is_last = atomicAdd(&arrived, 1u) == gridDim.x - 1;
      }
      __syncthreads();
      if (is_last && threadIdx.x == 0) {
        float t = 0;
        for (int b = 0; b < gridDim.x; b++) t += ((volatile float*)partial)[b];
        *out = t;
      }
    }"""
    x = RANDOM.integers(-9, 9, 10000).astype(np.float32)
    *_, out = results(
        source, "total", 30, 32, x, np.zeros(30, np.float32), np.zeros(1, np.float32), np.int32(10000)
    )
    assert out[0] == x.sum()


def test_as_many_blocks_as_multiprocessors_can_wait_for_one_another() -> None:
    source = """
    __global__ void meet(unsigned* gate, int* out) {
      if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(gate, 1u);
        while (*(volatile unsigned*)gate < gridDim.x) __nanosleep(100);
      }
      __syncthreads();
      out[blockIdx.x] = 1;
    }"""
    n = DEVICE.limits().num_sms
    _, out = results(source, "meet", n, 32, np.zeros(1, np.uint32), np.zeros(n, np.int32))
    assert out.all()


def test_a_spin_lock_inside_a_block_makes_progress() -> None:
    source = """
    __global__ void locked(int* lock, int* count) {
      bool done = false;
      while (!done) {
        if (atomicCAS(lock, 0, 1) == 0) { *(volatile int*)count += 1; __threadfence(); atomicExch(lock, 0); done = true; }
      }
    }"""
    _, count = results(source, "locked", 4, 64, np.zeros(1, np.int32), np.zeros(1, np.int32))
    assert count[0] == 256


def test_vector_types_move_whole_and_have_their_alignment() -> None:
    source = """
    static_assert(alignof(float4) == 16 && sizeof(float3) == 12 && alignof(double2) == 16 && sizeof(uchar4) == 4, "");
    __global__ void turn(const float4* x, float4* y, uchar4* bytes, double2* d) {
      float4 v = x[threadIdx.x];
      y[threadIdx.x] = make_float4(v.w, v.z, v.y, v.x);
      uchar4 b = bytes[threadIdx.x]; b.x += 1; bytes[threadIdx.x] = b;
      d[threadIdx.x] = make_double2(d[threadIdx.x].y, d[threadIdx.x].x);
    }"""
    x, d = RANDOM.random((16, 4), np.float32), RANDOM.random((16, 2))
    b = RANDOM.integers(0, 255, (16, 4)).astype(np.uint8)
    # The kernel sees vectors; a buffer has elements.
    _, y, bytes_after, d_after = results(source, "turn", 1, 16, x, x * 0, b, d)
    assert (y == x[:, ::-1]).all()
    assert (d_after == d[:, ::-1]).all()
    assert (bytes_after == b + np.array([1, 0, 0, 0], np.uint8)).all()


def test_scalars_of_every_width_and_bool_arrays() -> None:
    source = """
    __global__ void scalars(double* out, bool* flags, bool b, signed char c, unsigned short s,
                            long long l, float f, double d, float2 z) {
      out[0] = b; out[1] = c; out[2] = s; out[3] = (double)l; out[4] = f; out[5] = d; out[6] = z.x; out[7] = z.y;
      flags[0] = flags[1] && b;
    }"""
    out, flags = results(
        source, "scalars", 1, 1, np.zeros(8), np.array([False, True]), np.bool_(True), np.int8(-3), np.uint16(65535),
        np.int64(-(2**40)), np.float32(0.5), np.float64(1e300), np.complex64(1 - 2j),
    )  # fmt: skip
    assert list(out) == [1, -3, 65535, -(2**40), 0.5, 1e300, 1, -2]
    assert list(flags) == [True, True]


def test_device_heap_and_recursion() -> None:
    source = """
    __device__ int depth(int n) { return n == 0 ? 0 : 1 + depth(n - 1); }
    __global__ void heap(int* out) {
      int* p = (int*)malloc(sizeof(int) * 100);
      for (int i = 0; i < 100; i++) p[i] = i;
      out[threadIdx.x] = p[threadIdx.x] + depth(50);
      free(p);
    }"""
    (out,) = results(source, "heap", 1, 64, np.zeros(64, np.int32))
    assert (out == np.arange(64) + 50).all()


def test_shared_memory_in_every_spelling() -> None:
    source = """
    struct Cell { float v; __device__ Cell() {} };
    namespace tools {
    __shared__ alignas(64) float in_namespace[32];
    extern __shared__ float whole[];
    }
    template <typename T> struct Storage {
      __device__ T* get() { extern __shared__ __align__(16) unsigned char m[]; return (T*)m; }
    };
    extern "C" __global__ void k(float* x) {
      __shared__ __align__(128) float a[32];
      __shared__ alignas(16) float b[32], c[32];
      static __shared__ float d[32];
      volatile __shared__ float e[32];
      __shared__ Cell cells[32];
      extern __shared__ float2 pairs[][16];
      int i = threadIdx.x, j = 31 - i;
      a[i] = b[i] = c[i] = d[i] = tools::in_namespace[i] = cells[i].v = x[i];
      e[i] = x[i];
      (&pairs[0][0].x)[i] = x[i];
      __syncthreads();
      x[i] = a[j] + b[j] + c[j] + d[j] + e[j] + tools::in_namespace[j] + cells[j].v
             + tools::whole[j] + Storage<float>().get()[j];
    }"""
    (x,) = results(source, "k", 1, 32, np.arange(32, dtype=np.float32), shared=128)
    assert (x == 9 * np.arange(32)[::-1]).all()


@pytest.mark.parametrize("name", ["exp", "abs", "sqrt", "max", "index", "select", "pow"])
def test_a_kernel_may_have_the_name_of_a_function(name: str) -> None:
    plain = f"""
    __global__ void {name}(const float* x, float* y, int n) {{
      if (threadIdx.x < n) y[threadIdx.x] = expf(x[threadIdx.x]) + fabsf(exp(-1.0f)) * 0.0f + max(0, 0) + sqrt(0.0);
    }}"""
    template = f"template <typename T> __global__ void {name}(T* y) {{ y[threadIdx.x] += 1; }}"
    x = RANDOM.random(32, np.float32)
    _, y = results(plain, name, 1, 32, x, x * 0, np.int32(32))
    assert np.allclose(y, np.exp(x), rtol=1e-6)
    (y,) = results(template, f"{name}<float>", 1, 32, x)
    assert (y == x + 1).all()
