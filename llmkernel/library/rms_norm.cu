// LLM-CUDA's own kernel: RMS norm over the last axis, with a weight.
//! rms_norm(x: T[M, N], weight: T[N], eps: float64) -> y: T[M, N]    where T in {float32, float16, bfloat16, float64}
//! let V = 16 // sizeof(T)
//! let packs = ceil_div(N, V) + min(N % V, 1)
//! when packs > 4096 or not aligned(x, 16):
//!     rms_norm_long<T><<<M, 512>>>(x, weight, y, N, eps)
//! when packs > 2048:
//!     rms_norm_block<T, 1024, 4><<<M, 1024>>>(x, weight, y, N, eps)
//! when packs > 1024:
//!     rms_norm_block<T, 512, 4><<<M, 512>>>(x, weight, y, N, eps)
//! when packs > 512:
//!     rms_norm_block<T, 256, 4><<<M, 256>>>(x, weight, y, N, eps)
//! when packs > 256:
//!     rms_norm_block<T, 128, 4><<<M, 128>>>(x, weight, y, N, eps)
//! when packs > 128:
//!     rms_norm_warp<T, 32, 8><<<ceil_div(M, 4), 128>>>(x, weight, y, M, N, eps)
//! when packs > 32:
//!     rms_norm_warp<T, 32, 4><<<ceil_div(M, 4), 128>>>(x, weight, y, M, N, eps)
//! otherwise:
//!     rms_norm_warp<T, 8, 4><<<ceil_div(M, 16), 128>>>(x, weight, y, M, N, eps)
#include <cuda_bf16.h>
#include <cuda_fp16.h>

// A row up to 64 KiB is read once and kept in registers; a longer one is read twice, the second time mostly from L2.
// Packs are laid over 16-byte boundaries of memory, not over the row: only the first and the last pack of a row of odd
// length fall back to single elements.

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

// How many elements the row starts past a 16-byte boundary.
template <typename T>
__device__ __forceinline__ int offset_in_pack(const T* row) {
    return static_cast<int>((reinterpret_cast<size_t>(row) & 15) / sizeof(T));
}

// Loads elements [first, first + Pack::size) of the row, zeros outside it.
template <typename T>
__device__ __forceinline__ Pack<T> load(const T* row, int first, int N, bool is_aligned) {
    Pack<T> pack;
    if (is_aligned && first >= 0 && first + Pack<T>::size <= N) {
        pack = *reinterpret_cast<const Pack<T>*>(row + first);
    } else {
#pragma unroll
        for (int k = 0; k < Pack<T>::size; ++k) {
            narrow(pack.at[k], typename Wide<T>::type(0));
            if (first + k >= 0 && first + k < N) pack.at[k] = row[first + k];
        }
    }
    return pack;
}

// Past the caches' other contents: nobody here reads it again. And the compiler does not split what it does not see.
template <typename T>
__device__ __forceinline__ void store(T* row, const Pack<T>& pack, int first, int N, bool is_aligned) {
    if (is_aligned && first >= 0 && first + Pack<T>::size <= N) {
        __stcs(reinterpret_cast<uint4*>(row + first), *reinterpret_cast<const uint4*>(&pack));
    } else {
#pragma unroll
        for (int k = 0; k < Pack<T>::size; ++k) {
            if (first + k >= 0 && first + k < N) row[first + k] = pack.at[k];
        }
    }
}

template <int LANES, typename A>
__device__ __forceinline__ A sum_lanes(A v) {
#pragma unroll
    for (int step = LANES / 2; step > 0; step /= 2) v += __shfl_xor_sync(0xffffffffu, v, step, LANES);
    return v;
}

// Every thread gets the sum. `slots` is used once only, so that one barrier is enough.
template <int WARPS, typename A>
__device__ __forceinline__ A sum_block(A v, A* slots) {
    v = sum_lanes<32>(v);
    if (threadIdx.x % 32 == 0) slots[threadIdx.x / 32] = v;
    __syncthreads();
    v = threadIdx.x % 32 < WARPS ? slots[threadIdx.x % 32] : A(0);
    return sum_lanes<32>(v);
}

// A row in the registers of `LANES` threads, `PACKS` packs each.
template <typename T, int LANES, int PACKS>
struct Row {
    using A = typename Wide<T>::type;
    static constexpr int V = Pack<T>::size;
    Pack<T> packs[PACKS];
    int first;

    __device__ __forceinline__ void read(const T* row, int lane, int N) {
        first = lane * V - offset_in_pack(row);
#pragma unroll
        for (int p = 0; p < PACKS; ++p) packs[p] = load(row, first + p * LANES * V, N, true);
    }

    __device__ __forceinline__ A sum_of_squares() const {
        A s = 0;
#pragma unroll
        for (int p = 0; p < PACKS; ++p)
#pragma unroll
            for (int k = 0; k < V; ++k) s += widen(packs[p].at[k]) * widen(packs[p].at[k]);
        return s;
    }

    __device__ __forceinline__ void write(const T* row, const T* weight, T* y, A scale, int N) {
        const bool is_weight_aligned = offset_in_pack(weight) == offset_in_pack(row);
        const bool is_y_aligned = offset_in_pack(y) == offset_in_pack(row);
#pragma unroll
        for (int p = 0; p < PACKS; ++p) {
            const int i = first + p * LANES * V;
            const Pack<T> w = load(weight, i, N, is_weight_aligned);
#pragma unroll
            for (int k = 0; k < V; ++k) narrow(packs[p].at[k], widen(packs[p].at[k]) * scale * widen(w.at[k]));
            store(y, packs[p], i, N, is_y_aligned);
        }
    }
};

template <typename A>
__device__ __forceinline__ A scale_of(A sum_of_squares, int N, double eps) {
    return A(1) / sqrt(sum_of_squares / A(N) + A(eps));
}

// Short rows: `LANES` threads a row, no shared memory and no barrier.
template <typename T, int LANES, int PACKS>
__global__ void __launch_bounds__(128) rms_norm_warp(const T* __restrict__ x, const T* __restrict__ weight,
                                                     T* __restrict__ y, long long M, int N, double eps) {
    const long long row = static_cast<long long>(blockIdx.x) * (128 / LANES) + threadIdx.x / LANES;
    // Threads past the last row stay for the shuffles and work on an empty row.
    const int length = row < M ? N : 0;
    const long long start = row < M ? row * N : 0;
    Row<T, LANES, PACKS> cached;
    cached.read(x + start, threadIdx.x % LANES, length);
    const auto s = sum_lanes<LANES>(cached.sum_of_squares());
    cached.write(x + start, weight, y + start, scale_of(s, N, eps), length);
}

// Middle rows: one block a row.
template <typename T, int THREADS, int PACKS>
__global__ void __launch_bounds__(THREADS, 1024 / THREADS) rms_norm_block(const T* __restrict__ x, const T* __restrict__ weight,
                                                          T* __restrict__ y, int N, double eps) {
    using A = typename Wide<T>::type;
    __shared__ A slots[THREADS / 32];
    const long long start = static_cast<long long>(blockIdx.x) * N;
    Row<T, THREADS, PACKS> cached;
    cached.read(x + start, threadIdx.x, N);
    const A s = sum_block<THREADS / 32>(cached.sum_of_squares(), slots);
    cached.write(x + start, weight, y + start, scale_of(s, N, eps), N);
}

// Long rows, and views that start off a boundary.
template <typename T>
__global__ void __launch_bounds__(512) rms_norm_long(const T* __restrict__ x, const T* __restrict__ weight,
                                                     T* __restrict__ y, int N, double eps) {
    using A = typename Wide<T>::type;
    constexpr int V = Pack<T>::size, UNROLL = 4;
    __shared__ A slots[16];
    x += static_cast<long long>(blockIdx.x) * N;
    y += static_cast<long long>(blockIdx.x) * N;
    const int offset = offset_in_pack(x);
    A s = 0;
    for (int i = static_cast<int>(threadIdx.x) * V - offset; i < N; i += 512 * UNROLL * V) {
        Pack<T> loaded[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) loaded[u] = load(x, i + u * 512 * V, N, true);
#pragma unroll
        for (int u = 0; u < UNROLL; ++u)
#pragma unroll
            for (int k = 0; k < V; ++k) s += widen(loaded[u].at[k]) * widen(loaded[u].at[k]);
    }
    const A scale = scale_of(sum_block<16>(s, slots), N, eps);
    const bool is_weight_aligned = offset_in_pack(weight) == offset;
    const bool is_y_aligned = offset_in_pack(y) == offset;
    for (int i = static_cast<int>(threadIdx.x) * V - offset; i < N; i += 512 * V) {
        Pack<T> pack = load(x, i, N, true);
        const Pack<T> w = load(weight, i, N, is_weight_aligned);
#pragma unroll
        for (int k = 0; k < V; ++k) narrow(pack.at[k], widen(pack.at[k]) * scale * widen(w.at[k]));
        store(y, pack, i, N, is_y_aligned);
    }
}
