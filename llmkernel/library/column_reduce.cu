// LLM-CUDA's own kernel: a reduction of every column (sum, mean, largest, smallest, norm).
//! reduce(x: T[M, N]) -> y: T[N]    where T in {float32, float16, bfloat16, float64}
//! let across = ceil_div(N, 32)
//! let parts = max(1, min(ceil_div(M, 256), ceil_div(8 * num_sms, max(across, 1))))
//! let share = ceil_div(M, parts)
//! scratch partial: float64[parts, N]
//! reduce_columns<T, Sum><<<across * parts, 256>>>(x, partial, M, N, across, share)
//! join_parts<T, Sum><<<ceil_div(N, 256), 256>>>(partial, y, M, N, parts)
#include <cuda_bf16.h>
#include <cuda_fp16.h>

// Neighbouring threads take neighbouring columns, so that every access is coalesced, whatever the row length. The rows
// are split over blocks until the machine is full; what the blocks found is joined by a second launch.

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

// Rows [first, first + share) of 32 columns: eight warps take every eighth row, four loads a thread are in flight.
template <typename T, typename Op>
__global__ void __launch_bounds__(256) reduce_columns(const T* __restrict__ x, double* __restrict__ partial, long long M,
                                                      long long N, int across, long long share) {
    using A = typename Wide<T>::type;
    __shared__ A slots[8][33];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const long long column = static_cast<long long>(blockIdx.x % across) * 32 + lane, part = blockIdx.x / across;
    const long long last = min(M, (part + 1) * share);
    A result = Op::template empty<A>();
    if (column < N) {
#pragma unroll 4
        for (long long row = part * share + warp; row < last; row += 8) {
            result = Op::join(result, Op::element(widen(x[row * N + column])));
        }
    }
    slots[warp][lane] = result;
    __syncthreads();
    if (warp == 0 && column < N) {
        for (int w = 1; w < 8; ++w) result = Op::join(result, slots[w][lane]);
        partial[part * N + column] = result;
    }
}

template <typename T, typename Op>
__global__ void __launch_bounds__(256)
    join_parts(const double* __restrict__ partial, T* __restrict__ y, long long M, long long N, int parts) {
    const long long column = static_cast<long long>(blockIdx.x) * 256 + threadIdx.x;
    if (column >= N) return;
    double v = Op::template empty<double>();
    for (int p = 0; p < parts; ++p) v = Op::join(v, partial[p * N + column]);
    narrow(y[column], static_cast<typename Wide<T>::type>(Op::finish(v, M)));
}
