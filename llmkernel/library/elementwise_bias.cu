// LLM-CUDA's own kernel: an elementwise map of rows to which a bias was added.
//! bias_add(x: T[M, N], bias: T[N]) -> y: T[M, N]    where T in {float32, float16, bfloat16, float64}
//! let size = M * N
//! let tile = 16384 // sizeof(T)
//! let hop = (4096 // sizeof(T)) % max(N, 1)
//! when aligned(x, 16) and aligned(bias, 16) and N % (16 // sizeof(T)) == 0:
//!     map_packs<T, true><<<ceil_div(size, tile), 256>>>(x, bias, y, size, N, hop)
//! when aligned(x, 16):
//!     map_packs<T, false><<<ceil_div(size, tile), 256>>>(x, bias, y, size, N, hop)
//! otherwise:
//!     map_elements<T><<<ceil_div(size, tile), 256>>>(x, bias, y, size, N)
#include <cuda_bf16.h>
#include <cuda_fp16.h>

// The rows are walked as one long array in tiles of 16 KiB, so that any row length keeps 16-byte accesses. The column is
// found by one remainder a thread and then counted up; the bias comes from L1.

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

// The map of a sum x + bias, in float32 (float64 for float64).
template <typename A>
__device__ __forceinline__ A map(A x) {
    return x;  // map
}

template <typename T>
__device__ __forceinline__ T apply(T x, T bias) {
    T y;
    narrow(y, map<typename Wide<T>::type>(widen(x) + widen(bias)));
    return y;
}

// `HAS_BIAS_PACKS`: a pack of the rows never crosses a row's end, and the bias can be read in packs too.
// `hop` is the number of elements from one pack of a thread to its next, modulo N.
template <typename T, bool HAS_BIAS_PACKS>
__global__ void __launch_bounds__(256) map_packs(const T* __restrict__ x, const T* __restrict__ bias, T* __restrict__ y,
                                                 long long size, long long N, long long hop) {
    constexpr int V = Pack<T>::size, UNROLL = 4;
    const long long first = (static_cast<long long>(blockIdx.x) * UNROLL * 256 + threadIdx.x) * V;
    if (first >= size) return;
    Pack<T> loaded[UNROLL];
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
        const long long i = first + u * 256 * V;
        if (i + V <= size) loaded[u] = *reinterpret_cast<const Pack<T>*>(x + i);
    }
    long long column = first % N;
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
        const long long i = first + u * 256 * V;
        if (i + V <= size) {
            Pack<T> b;
            if (HAS_BIAS_PACKS) {
                b = *reinterpret_cast<const Pack<T>*>(bias + column);
            } else {
                long long c = column;
#pragma unroll
                for (int k = 0; k < V; ++k) {
                    b.at[k] = bias[c];
                    c = c + 1 == N ? 0 : c + 1;
                }
            }
#pragma unroll
            for (int k = 0; k < V; ++k) loaded[u].at[k] = apply(loaded[u].at[k], b.at[k]);
            *reinterpret_cast<Pack<T>*>(y + i) = loaded[u];
        } else {
            for (long long j = i; j < size; ++j) y[j] = apply(x[j], bias[j % N]);
        }
        column += hop;
        if (column >= N) column -= N;
    }
}

// For views that start off a 16-byte boundary.
template <typename T>
__global__ void __launch_bounds__(256) map_elements(const T* __restrict__ x, const T* __restrict__ bias,
                                                    T* __restrict__ y, long long size, long long N) {
    constexpr int TILE = 16384 / sizeof(T);
    const long long first = static_cast<long long>(blockIdx.x) * TILE + threadIdx.x;
#pragma unroll 4
    for (int u = 0; u < TILE; u += 256) {
        if (first + u < size) y[first + u] = apply(x[first + u], bias[(first + u) % N]);
    }
}
