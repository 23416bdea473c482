// LLM-CUDA's own kernel: alpha * a + beta * b.
//! axpby(a: T[N], b: T[N], alpha: float64, beta: float64) -> y: T[N]    where T in {float32, float16, bfloat16, float64}
//! let tile = 8192 // sizeof(T)
//! when aligned(a, 16) and aligned(b, 16):
//!     axpby_packs<T><<<ceil_div(N, tile), 256>>>(a, b, y, alpha, beta, N)
//! otherwise:
//!     axpby_elements<T><<<ceil_div(N, tile), 256>>>(a, b, y, alpha, beta, N)
#include <cuda_bf16.h>
#include <cuda_fp16.h>

// A block moves one tile of 8 KiB an array: four 16-byte loads a thread are in flight before the first is used.

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
__device__ __forceinline__ T apply(T a, T b, double alpha, double beta) {
    using A = typename Wide<T>::type;
    T y;
    narrow(y, A(alpha) * widen(a) + A(beta) * widen(b));
    return y;
}

template <typename T>
__global__ void __launch_bounds__(256) axpby_packs(const T* __restrict__ a, const T* __restrict__ b, T* __restrict__ y,
                                                   double alpha, double beta, long long N) {
    constexpr int V = Pack<T>::size, UNROLL = 2;
    const long long first = (static_cast<long long>(blockIdx.x) * UNROLL * 256 + threadIdx.x) * V;
    Pack<T> as[UNROLL], bs[UNROLL];
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
        const long long i = first + u * 256 * V;
        if (i + V <= N) {
            as[u] = *reinterpret_cast<const Pack<T>*>(a + i);
            bs[u] = *reinterpret_cast<const Pack<T>*>(b + i);
        }
    }
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
        const long long i = first + u * 256 * V;
        if (i + V <= N) {
#pragma unroll
            for (int k = 0; k < V; ++k) as[u].at[k] = apply(as[u].at[k], bs[u].at[k], alpha, beta);
            *reinterpret_cast<Pack<T>*>(y + i) = as[u];
        } else {
            for (long long j = i; j < N; ++j) y[j] = apply(a[j], b[j], alpha, beta);
        }
    }
}

// For views that start off a 16-byte boundary.
template <typename T>
__global__ void __launch_bounds__(256) axpby_elements(const T* __restrict__ a, const T* __restrict__ b,
                                                      T* __restrict__ y, double alpha, double beta, long long N) {
    constexpr int TILE = 8192 / sizeof(T);
    const long long first = static_cast<long long>(blockIdx.x) * TILE + threadIdx.x;
#pragma unroll 4
    for (int u = 0; u < TILE; u += 256) {
        if (first + u < N) y[first + u] = apply(a[first + u], b[first + u], alpha, beta);
    }
}
