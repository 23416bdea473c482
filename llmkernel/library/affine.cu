// LLM-CUDA's own kernel: alpha * x + beta.
//! affine(x: T[N], alpha: float64, beta: float64) -> y: T[N]    where T in {float32, float16, bfloat16, float64}
//! let tile = 16384 // sizeof(T)
//! when aligned(x, 16):
//!     affine_packs<T><<<ceil_div(N, tile), 256>>>(x, y, alpha, beta, N)
//! otherwise:
//!     affine_elements<T><<<ceil_div(N, tile), 256>>>(x, y, alpha, beta, N)
#include <cuda_bf16.h>
#include <cuda_fp16.h>

// A block moves one tile of 16 KiB: four 16-byte loads a thread are in flight before the first is used.

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

template <typename T>
__device__ __forceinline__ T apply(T x, double alpha, double beta) {
    using A = typename Wide<T>::type;
    T y;
    narrow(y, A(alpha) * widen(x) + A(beta));
    return y;
}

template <typename T>
__global__ void __launch_bounds__(256)
    affine_packs(const T* __restrict__ x, T* __restrict__ y, double alpha, double beta, long long N) {
    constexpr int V = Pack<T>::size, UNROLL = 4;
    const long long first = (static_cast<long long>(blockIdx.x) * UNROLL * 256 + threadIdx.x) * V;
    Pack<T> loaded[UNROLL];
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
        const long long i = first + u * 256 * V;
        if (i + V <= N) loaded[u] = *reinterpret_cast<const Pack<T>*>(x + i);
    }
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
        const long long i = first + u * 256 * V;
        if (i + V <= N) {
#pragma unroll
            for (int k = 0; k < V; ++k) loaded[u].at[k] = apply(loaded[u].at[k], alpha, beta);
            *reinterpret_cast<Pack<T>*>(y + i) = loaded[u];
        } else {
            for (long long j = i; j < N; ++j) y[j] = apply(x[j], alpha, beta);
        }
    }
}

// For views that start off a 16-byte boundary.
template <typename T>
__global__ void __launch_bounds__(256)
    affine_elements(const T* __restrict__ x, T* __restrict__ y, double alpha, double beta, long long N) {
    constexpr int TILE = 16384 / sizeof(T);
    const long long first = static_cast<long long>(blockIdx.x) * TILE + threadIdx.x;
#pragma unroll 8
    for (int u = 0; u < TILE; u += 256) {
        if (first + u < N) y[first + u] = apply(x[first + u], alpha, beta);
    }
}
