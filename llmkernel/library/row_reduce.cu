// LLM-CUDA's own kernel: a reduction of every row (sum, mean, largest, smallest, norm).
//! reduce(x: T[M, N]) -> y: T[M]    where T in {float32, float16, bfloat16, float64}
//! let tile = 65536 // sizeof(T)
//! let parts = min(ceil_div(N, tile), 4 * ceil_div(num_sms, max(M, 1)))
//! when parts > 1 and M < 2 * num_sms:
//!     scratch partial: float64[M, parts]
//!     reduce_part<T, Sum><<<(parts, M), 256>>>(x, partial, N)
//!     join_parts<T, Sum><<<ceil_div(M, 4), 128>>>(partial, y, M, N, parts)
//! when N * sizeof(T) > 4096:
//!     reduce_block<T, Sum><<<M, 256>>>(x, y, N)
//! when N * sizeof(T) > 512:
//!     reduce_lanes<T, Sum, 32><<<ceil_div(M, 8), 256>>>(x, y, M, N)
//! otherwise:
//!     reduce_lanes<T, Sum, 8><<<ceil_div(M, 32), 256>>>(x, y, M, N)
#include <cuda_bf16.h>
#include <cuda_fp16.h>

// Reading is everything here: 16-byte loads, several a thread in flight before the first is used. Packs are laid over
// 16-byte boundaries of memory, not over the row: only the first and the last pack of a row of odd length fall back to
// single elements.

template <typename T>
struct alignas(16) Pack {
    static constexpr int size = 16 / sizeof(T);
    T at[size];
};

template <typename T>
struct Wide {
    using type = float;
};
template <>
struct Wide<double> {
    using type = double;
};

__device__ __forceinline__ float widen(float v) { return v; }
__device__ __forceinline__ double widen(double v) { return v; }
__device__ __forceinline__ float widen(__half v) { return __half2float(v); }
__device__ __forceinline__ float widen(__nv_bfloat16 v) { return __bfloat162float(v); }

__device__ __forceinline__ void narrow(float& to, float v) { to = v; }
__device__ __forceinline__ void narrow(double& to, double v) { to = v; }
__device__ __forceinline__ void narrow(__half& to, float v) { to = __float2half_rn(v); }
__device__ __forceinline__ void narrow(__nv_bfloat16& to, float v) { to = __float2bfloat16_rn(v); }

// An operation: what an element contributes, how two results join, and what is made of the last one.
struct Sum {
    template <typename A> __device__ static A empty() { return A(0); }
    template <typename A> __device__ static A element(A v) { return v; }
    template <typename A> __device__ static A join(A a, A b) { return a + b; }
    template <typename A> __device__ static A finish(A v, long long) { return v; }
};

struct Mean : Sum {
    template <typename A> __device__ static A finish(A v, long long N) { return v / A(N); }
};

struct SquaredSum : Sum {
    template <typename A> __device__ static A element(A v) { return v * v; }
};

struct MeanSquare : Mean {
    template <typename A> __device__ static A element(A v) { return v * v; }
};

struct Norm : SquaredSum {
    template <typename A> __device__ static A finish(A v, long long) { return sqrt(v); }
};

// NaN wins, as in NumPy and PyTorch: fmax would drop it.
struct Largest : Sum {
    template <typename A> __device__ static A empty() { return -static_cast<A>(INFINITY); }
    template <typename A> __device__ static A join(A a, A b) { return a > b || a != a ? a : b; }
};

struct Smallest : Sum {
    template <typename A> __device__ static A empty() { return static_cast<A>(INFINITY); }
    template <typename A> __device__ static A join(A a, A b) { return a < b || a != a ? a : b; }
};

// Reduces elements [begin, end) of an array over `THREADS` threads; each returns its own share.
template <typename T, typename Op, int THREADS>
__device__ __forceinline__ typename Wide<T>::type reduce_share(const T* x, int thread, long long begin, long long end) {
    using A = typename Wide<T>::type;
    constexpr int V = Pack<T>::size, UNROLL = 4;
    const long long offset = (reinterpret_cast<size_t>(x + begin) & 15) / sizeof(T);
    A result = Op::template empty<A>();
    for (long long i = begin - offset + static_cast<long long>(thread) * V; i < end; i += UNROLL * THREADS * V) {
        Pack<T> loaded[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) {
            const long long j = i + u * THREADS * V;
            if (j >= begin && j + V <= end) loaded[u] = *reinterpret_cast<const Pack<T>*>(x + j);
        }
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) {
            const long long j = i + u * THREADS * V;
            if (j >= begin && j + V <= end) {
#pragma unroll
                for (int k = 0; k < V; ++k) result = Op::join(result, Op::element(widen(loaded[u].at[k])));
            } else {
                for (long long e = j < begin ? begin : j; e < j + V && e < end; ++e) {
                    result = Op::join(result, Op::element(widen(x[e])));
                }
            }
        }
    }
    return result;
}

template <typename Op, int LANES, typename A>
__device__ __forceinline__ A join_lanes(A v) {
#pragma unroll
    for (int step = LANES / 2; step > 0; step /= 2) v = Op::join(v, __shfl_xor_sync(0xffffffffu, v, step, LANES));
    return v;
}

// Thread 0 gets the result.
template <typename Op, typename A>
__device__ __forceinline__ A join_block(A v, A* slots) {
    v = join_lanes<Op, 32>(v);
    if (threadIdx.x % 32 == 0) slots[threadIdx.x / 32] = v;
    __syncthreads();
    v = threadIdx.x < 8 ? slots[threadIdx.x] : Op::template empty<A>();
    return join_lanes<Op, 8>(v);
}

// Short rows: `LANES` threads a row.
template <typename T, typename Op, int LANES>
__global__ void __launch_bounds__(256) reduce_lanes(const T* __restrict__ x, T* __restrict__ y, long long M, int N) {
    const long long row = static_cast<long long>(blockIdx.x) * (256 / LANES) + threadIdx.x / LANES;
    const long long begin = row < M ? row * N : 0, end = row < M ? begin + N : 0;
    auto v = join_lanes<Op, LANES>(reduce_share<T, Op, LANES>(x, threadIdx.x % LANES, begin, end));
    if (row < M && threadIdx.x % LANES == 0) narrow(y[row], Op::finish(v, N));
}

// Longer rows: one block a row.
template <typename T, typename Op>
__global__ void __launch_bounds__(256) reduce_block(const T* __restrict__ x, T* __restrict__ y, int N) {
    using A = typename Wide<T>::type;
    __shared__ A slots[8];
    const long long begin = static_cast<long long>(blockIdx.x) * N;
    const A v = join_block<Op>(reduce_share<T, Op, 256>(x, threadIdx.x, begin, begin + N), slots);
    if (threadIdx.x == 0) narrow(y[blockIdx.x], Op::finish(v, N));
}

// Few long rows: each is split over several blocks, in whole packs.
template <typename T, typename Op>
__global__ void __launch_bounds__(256) reduce_part(const T* __restrict__ x, double* __restrict__ partial, long long N) {
    using A = typename Wide<T>::type;
    constexpr int V = Pack<T>::size;
    __shared__ A slots[8];
    const long long share = (N / gridDim.x / V + 1) * V;
    const long long row = static_cast<long long>(blockIdx.y) * N;
    const long long begin = min(N, share * blockIdx.x), end = min(N, begin + share);
    const A v = join_block<Op>(reduce_share<T, Op, 256>(x, threadIdx.x, row + begin, row + end), slots);
    if (threadIdx.x == 0) partial[static_cast<long long>(blockIdx.y) * gridDim.x + blockIdx.x] = v;
}

template <typename T, typename Op>
__global__ void __launch_bounds__(128)
    join_parts(const double* __restrict__ partial, T* __restrict__ y, long long M, long long N, int parts) {
    const long long row = static_cast<long long>(blockIdx.x) * 4 + threadIdx.x / 32;
    double v = Op::template empty<double>();
    for (int p = threadIdx.x % 32; row < M && p < parts; p += 32) v = Op::join(v, partial[row * parts + p]);
    v = join_lanes<Op, 32>(v);
    if (row < M && threadIdx.x % 32 == 0) narrow(y[row], static_cast<typename Wide<T>::type>(Op::finish(v, N)));
}
