"""Small candidates, each of which asks one thing of the device."""

SCALE = """
//! scale(x: float32[N], a: float32) -> y: float32[N]
//! scale<<<ceil_div(N, 256), 256>>>(x, a, y, N)
__global__ void scale(const float* x, float a, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i];
}
"""

ADD = """
//! add(x: T[N], y: T[N]) -> z: T[N]    where T in {float32, bfloat16, float16, float64, int64, complex64}
//! add<T><<<ceil_div(N, 256), 256>>>(x, y, z, N)
#include <cuda_bf16.h>
#include <cuda_fp16.h>
template <typename T> __device__ T plus(T a, T b) { return a + b; }
template <> __device__ float2 plus(float2 a, float2 b) { return make_float2(a.x + b.x, a.y + b.y); }
template <typename T>
__global__ void add(const T* x, const T* y, T* z, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) z[i] = plus(x[i], y[i]);
}
"""

# Aligned vectors where the addresses allow it: the plan depends on the address.
COPY = """
//! copy(x: float32[N]) -> y: float32[N]
//! when aligned(x, 16) and N % 4 == 0:
//!     copy_vectors<<<4 * num_sms, 512>>>(x, y, N // 4)
//! otherwise:
//!     copy_elements<<<4 * num_sms, 512>>>(x, y, N)
#include <llmkernel.cuh>
__global__ void copy_vectors(const float* x, float* y, long long n) {
  for (long long i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    llmkernel::store_vector(y + 4 * i, llmkernel::load_vector<4>(x + 4 * i));
}
__global__ void copy_elements(const float* x, float* y, long long n) {
  for (long long i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = x[i];
}
"""

SUM = """
//! total(x: float32[N]) -> s: float32 = 0
//! total<<<num_sms, 256>>>(x, s, N)
#include <llmkernel.cuh>
__global__ void total(const float* x, float* s, long long n) {
  float sum = 0;
  for (long long i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += x[i];
  sum = llmkernel::block_sum(sum);
  if (threadIdx.x == 0) atomicAdd(s, sum);
}
"""

INCREMENT = """
//! increment(inout x: int32[N])
//! increment<<<ceil_div(N, 256), 256>>>(x, N)
__global__ void increment(int* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] += 1;
}
"""

TRANSPOSED = """
//! transposed(x: strided float32[M, N]) -> y: float32[M, N]
//! transposed<<<(ceil_div(N, 32), M), 32>>>(x, x.stride(0), x.stride(1), y, N)
__global__ void transposed(const float* x, long long row, long long column, float* y, int n) {
  int j = blockIdx.x * 32 + threadIdx.x;
  if (j < n) y[(long long)blockIdx.y * n + j] = x[blockIdx.y * row + j * column];
}
"""

STEPS = """
//! steps(x: float32[N]) -> y: float32[N]
//! scratch other: float32[N]
//! first<<<ceil_div(N, 256), 256>>>(x, y, N)
//! repeat 5:
//!     again<<<ceil_div(N, 256), 256>>>(y, other, N)
//!     swap(y, other)
__global__ void first(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i];
}
__global__ void again(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i] + 1;
}
"""

# float32 halved: a denormal stays one unless denormals are flushed; 1 / 3 and sqrt(2) must be correctly rounded.
ARITHMETIC = """
//! arithmetic(x: float32[N]) -> (half: float32[N], third: float32[N], root: float32[N])
//! arithmetic<<<1, N>>>(x, half, third, root)
__global__ void arithmetic(const float* x, float* half, float* third, float* root) {
  int i = threadIdx.x;
  half[i] = x[i] * 0.5f;
  third[i] = x[i] / 3.0f;
  root[i] = sqrtf(x[i]);
}
"""

SCALARS = """
//! scalars(a: float16, b: bfloat16, c: float64, d: int8, e: uint64, f: bool, g: complex64,
//!         h: complex128) -> y: float64[10]
//! scalars<<<1, 1>>>(a, b, c, d, e, f, g, h, y)
#include <cuda_bf16.h>
#include <cuda_fp16.h>
__global__ void scalars(__half a, __nv_bfloat16 b, double c, signed char d, unsigned long long e, bool f, float2 g,
                        double2 h, double* y) {
  y[0] = __half2float(a); y[1] = __bfloat162float(b); y[2] = c; y[3] = d; y[4] = e; y[5] = f;
  y[6] = g.x; y[7] = g.y; y[8] = h.x; y[9] = h.y;
}
"""

SHARED = """
//! shared(x: float32[N]) -> y: float32[N]
//! shared<<<1, 1024, 4 * N>>>(x, y, N)
__global__ void shared(const float* x, float* y, int n) {
  extern __shared__ float tile[];
  __shared__ float first[1024];
  first[threadIdx.x] = x[threadIdx.x];
  for (int i = threadIdx.x; i < n; i += blockDim.x) tile[i] = x[i];
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = tile[n - 1 - i] + first[0];
}
"""

CLUSTER = """
//! cluster(x: float32[N]) -> y: float32[N]
//! let blocks = 16
//! cluster<<<blocks, 64, cluster=(blocks, 1, 1)>>>(x, y, N)
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void cluster(const float* x, float* y, int n) {
  __shared__ float mine;
  auto group = cg::this_cluster();
  if (threadIdx.x == 0) mine = x[group.block_rank()];
  group.sync();
  // Every block reads the value of its neighbour through distributed shared memory.
  float* theirs = group.map_shared_rank(&mine, (group.block_rank() + 1) % group.num_blocks());
  if (threadIdx.x == 0) y[group.block_rank()] = *theirs;
  group.sync();
}
"""

COOPERATIVE = """
//! grid_sum(x: float32[N]) -> y: float32[N]
//! scratch partial: float32[num_sms]
//! grid_sum<<<num_sms, 256, cooperative>>>(x, partial, y, N)
#include <cooperative_groups.h>
#include <llmkernel.cuh>
__global__ void grid_sum(const float* x, float* partial, float* y, int n) {
  float sum = 0;
  for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) sum += x[i];
  sum = llmkernel::block_sum(sum);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
  cooperative_groups::this_grid().sync();
  float total = 0;
  for (int b = 0; b < gridDim.x; b++) total += partial[b];
  for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) y[i] = total;
}
"""

TENSOR_COPY = """
//! tensor_copy(x: float32[M, N]) -> y: float32[M, N]
//! require tma_ok(x)
//! tensor_copy<<<(ceil_div(N, 64), ceil_div(M, 32)), 32>>>(tensor_map(x, box=(32, 64)), tensor_map(y, box=(32, 64)))
#include <llmkernel.cuh>
using namespace llmkernel;
__global__ void tensor_copy(const __grid_constant__ CUtensorMap x, const __grid_constant__ CUtensorMap y) {
  __shared__ alignas(128) float tile[32 * 64];
  __shared__ Mbarrier full;
  if (threadIdx.x == 0) {
    mbarrier_init(&full, 1);
    mbarrier_init_fence();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    mbarrier_arrive_expect(&full, sizeof tile);
    tensor_load_2d(tile, x, 64 * blockIdx.x, 32 * blockIdx.y, &full);
  }
  mbarrier_wait(&full, 0);
  for (int i = threadIdx.x; i < 32 * 64; i += 32) tile[i] += 1;
  async_proxy_fence();
  __syncthreads();
  if (threadIdx.x == 0) {
    tensor_store_2d(y, tile, 64 * blockIdx.x, 32 * blockIdx.y);
    tensor_store_commit();
    tensor_store_wait<0>();
  }
}
"""

# c[M, N] = a[M, K] b[N, K]^T by warpgroup products of 64 x COLUMNS.
WARPGROUP = """
//! warpgroup(a: T[M, K], b: T[N, K]) -> c: float32[M, N]    where T in {bfloat16, float16}
//! require M % 64 == 0 and N % COLUMNS == 0 and K % 64 == 0
//! let bytes = 128 * (64 + COLUMNS) + 1024
//! warpgroup<T, COLUMNS><<<(N // COLUMNS, M // 64), 128, bytes>>>(
//!     tensor_map(a, box=(64, 64), swizzle=128), tensor_map(b, box=(COLUMNS, 64), swizzle=128), c, N, K)
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <llmkernel.cuh>
using namespace llmkernel;
template <typename T, int N>
__global__ void __launch_bounds__(128) warpgroup(const __grid_constant__ CUtensorMap a,
                                                 const __grid_constant__ CUtensorMap b, float* c, int columns, int K) {
  extern __shared__ unsigned char memory[];
  __shared__ Mbarrier full;
  unsigned char* base = memory + (1024 - shared_address(memory) % 1024) % 1024;
  T* as = reinterpret_cast<T*>(base);
  T* bs = as + 64 * 64;
  if (threadIdx.x == 0) {
    mbarrier_init(&full, 1);
    mbarrier_init_fence();
  }
  __syncthreads();
  float d[N / 2];
  for (int k = 0; k < K; k += 64) {
    if (threadIdx.x == 0) {
      mbarrier_arrive_expect(&full, 128 * (64 + N));
      tensor_load_2d(as, a, k, 64 * blockIdx.y, &full);
      tensor_load_2d(bs, b, k, N * blockIdx.x, &full);
    }
    mbarrier_wait(&full, (k / 64) & 1);
    wgmma_fence();
    for (int step = 0; step < 4; step++)
      wgmma_64xNx16<T, N>(d, wgmma_descriptor(as) + 2 * step, wgmma_descriptor(bs) + 2 * step, k + step > 0);
    wgmma_commit();
    wgmma_wait<0>();
    __syncthreads();
  }
  int t = threadIdx.x, row = 64 * blockIdx.y + 16 * (t / 32) + (t % 32) / 4;
  for (int j = 0; j < N / 8; j++) {
    int column = N * blockIdx.x + 8 * j + 2 * (t % 4);
    c[row * columns + column] = d[4 * j];
    c[row * columns + column + 1] = d[4 * j + 1];
    c[(row + 8) * columns + column] = d[4 * j + 2];
    c[(row + 8) * columns + column + 1] = d[4 * j + 3];
  }
}
"""

# One warp: c[16, 8] = a[16, 16] b[8, 16]^T.
WARP_PRODUCT = """
//! warp_product(a: T[16, 16], b: T[8, 16]) -> c: float32[16, 8]    where T in {bfloat16, float16}
//! warp_product<T><<<1, 32>>>(a, b, c)
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <llmkernel.cuh>
using namespace llmkernel;
template <typename T>
__global__ void warp_product(const T* a, const T* b, float* c) {
  __shared__ alignas(16) T as[16 * 16];
  __shared__ alignas(16) T bs[8 * 16];
  int lane = threadIdx.x;
  copy_async(&as[8 * lane], a + 8 * lane);
  if (lane < 16) copy_async(&bs[8 * lane], b + 8 * lane);
  copy_async_commit();
  copy_async_wait<0>();
  __syncthreads();
  unsigned fa[4], fb[4];
  load_matrix_x4(fa, &as[16 * (lane % 16) + 8 * (lane / 16)]);
  load_matrix_x4(fb, &bs[16 * (lane % 8) + 8 * (lane / 8 % 2)]);
  float d[4] = {};
  unsigned pair[2] = {fb[0], fb[1]};
  multiply_16x8x16<T>(d, fa, pair);
  for (int i = 0; i < 4; i++) c[8 * (lane / 4 + 8 * (i / 2)) + 2 * (lane % 4) + i % 2] = d[i];
}
"""

STALE_SHARED = """
//! stale(n: int32) -> y: uint32[n]
//! stale<<<num_sms, 256, 4096>>>(y, n)
__global__ void stale(unsigned* y, int n) {
  extern __shared__ unsigned words[];
  if (blockIdx.x == 0) for (int i = threadIdx.x; i < n; i += 256) y[i] = words[i % 1024];
}
"""

COUNTER = """
//! counter() -> y: int32[1]
//! counter<<<1, 1>>>(y)
__device__ int calls = 0;
__global__ void counter(int* y) { y[0] = ++calls; }
"""

PRINTS = """
//! prints() -> y: int32[1]
//! prints<<<1, 2>>>(y)
#include <stdio.h>
__global__ void prints(int* y) {
  printf("thread %d says %s\\n", threadIdx.x, "hello");
  y[0] = 1;
}
"""

LIMITS = """
//! names() -> y: float64[6]
//! names<<<1, 1>>>(y)
#include <cfloat>
#include <climits>
#include <cmath>
#include <cstdint>
#include <limits>
__global__ void names(double* y) {
  y[0] = FLT_MAX; y[1] = std::numeric_limits<float>::epsilon(); y[2] = -INFINITY; y[3] = INT_MAX;
  y[4] = std::max<int64_t>(INT64_MIN, 5); y[5] = M_PI;
}
"""

ILLEGAL_ADDRESS = """
//! f() -> y: float32[1]
//! f<<<1, 1>>>(y)
__global__ void f(float* y) { y[1ll << 40] = 1; }
"""

MISALIGNED_ADDRESS = """
//! f() -> y: float32[8]
//! f<<<1, 1>>>(y)
__global__ void f(float* y) { *(double*)((char*)y + 4) = 1; }
"""

TRAP = """
//! f() -> y: float32[1]
//! f<<<1, 1>>>(y)
__global__ void f(float* y) { __trap(); }
"""

ASSERTION = """
//! f() -> y: int32[1]
//! f<<<1, 1>>>(y)
#include <assert.h>
__global__ void f(int* y) {
  y[0] = 0;
  assert(y[0] == 1);
}
"""

ENDLESS_LOOP = """
//! f() -> y: int32[1]
//! f<<<1, 1>>>(y)
__global__ void f(volatile int* y) {
  y[0] = 0;
  while (y[0] == 0) __nanosleep(100);
}
"""

SHARED_OUT_OF_RANGE = """
//! f(n: int32) -> y: int32[1]
//! f<<<1, 32>>>(y, n)
__global__ void f(int* y, int n) {
  __shared__ int s[32];
  s[threadIdx.x * n] = 1;
  __syncthreads();
  y[0] = s[n];
}
"""

ENDLESS_RECURSION = """
//! f(n: int32) -> y: int32[1]
//! f<<<1, 1>>>(y, n)
__device__ __noinline__ int deep(int n, volatile int* p) {
  volatile int kept[256];
  kept[n % 256] = n;
  int r = n > 0 ? deep(n + 1, p) : 0;
  return r + kept[n % 256] + p[0];
}
__global__ void f(int* y, int n) { y[0] = deep(n, y); }
"""

SECOND_KERNEL = """
//! f() -> y: float32[1]
//! good<<<1, 1>>>(y)
//! bad<<<1, 1>>>(y)
//! good<<<1, 1>>>(y)
__global__ void good(float* y) { y[0] = 1; }
__global__ void bad(float* y) { y[1ll << 40] = 1; }
"""

# Name to the fault kinds that it may end with.
FAULTS = {
    "ILLEGAL_ADDRESS": ("illegal_address",),
    "MISALIGNED_ADDRESS": ("misaligned_address",),
    "TRAP": ("trap",),
    "ASSERTION": ("trap",),
    "ENDLESS_LOOP": ("timeout",),
    "SHARED_OUT_OF_RANGE": ("illegal_address", "trap"),
    "ENDLESS_RECURSION": ("stack_overflow", "illegal_address"),
    "SECOND_KERNEL": ("illegal_address",),
}
