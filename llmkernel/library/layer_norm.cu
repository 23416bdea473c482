// LLM-CUDA's own kernel: layer norm over the last axis, with weight and bias.
//! layer_norm(x: T[M, N], weight: T[N], bias: T[N], eps: float64) -> y: T[M, N]    where T in {float32, float16, bfloat16, float64}
//! let V = 16 // sizeof(T)
//! let packs = ceil_div(N, V) + min(N % V, 1)
//! when packs > 4096 or not aligned(x, 16) or (packs > 2048 and sizeof(T) == 2):
//!     layer_norm_long<T><<<M, 512>>>(x, weight, bias, y, N, eps)
//! when packs > 2048:
//!     layer_norm_block<T, 1024, 4><<<M, 1024>>>(x, weight, bias, y, N, eps)
//! when packs > 1024:
//!     layer_norm_block<T, 512, 4><<<M, 512>>>(x, weight, bias, y, N, eps)
//! when packs > 512:
//!     layer_norm_block<T, 256, 4><<<M, 256>>>(x, weight, bias, y, N, eps)
//! when packs > 256:
//!     layer_norm_block<T, 128, 4><<<M, 128>>>(x, weight, bias, y, N, eps)
//! when packs > 128:
//!     layer_norm_warp<T, 32, 8><<<ceil_div(M, 4), 128>>>(x, weight, bias, y, M, N, eps)
//! when packs > 32:
//!     layer_norm_warp<T, 32, 4><<<ceil_div(M, 4), 128>>>(x, weight, bias, y, M, N, eps)
//! otherwise:
//!     layer_norm_warp<T, 8, 4><<<ceil_div(M, 16), 128>>>(x, weight, bias, y, M, N, eps)
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

template <typename T>
struct Affine {
    const T* weight;
    const T* bias;
    bool is_weight_aligned, is_bias_aligned;

    __device__ __forceinline__ Affine(const T* w, const T* b, const T* row)
        : weight(w),
          bias(b),
          is_weight_aligned(offset_in_pack(w) == offset_in_pack(row)),
          is_bias_aligned(offset_in_pack(b) == offset_in_pack(row)) {}

    template <typename A>
    __device__ __forceinline__ void apply(Pack<T>& pack, int i, int N, A mean, A rest, A scale) const {
        const Pack<T> w = load(weight, i, N, is_weight_aligned);
        const Pack<T> b = load(bias, i, N, is_bias_aligned);
#pragma unroll
        for (int k = 0; k < Pack<T>::size; ++k) {
            // A scale of 0 says that the variance overflowed; the difference may have done so too, and inf * 0 is NaN.
            const A v = scale == A(0) ? A(0) : ((widen(pack.at[k]) - mean) - rest) * scale;
            narrow(pack.at[k], v * widen(w.at[k]) + widen(b.at[k]));
        }
    }
};

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

    // Every term is divided, not the sum, which might overflow.
    __device__ __forceinline__ A mean(int N) const {
        const A part = A(1) / A(N);
        A s = 0;
#pragma unroll
        for (int p = 0; p < PACKS; ++p)
#pragma unroll
            for (int k = 0; k < V; ++k) s += widen(packs[p].at[k]) * part;
        return s;
    }

    __device__ __forceinline__ void differences(A mean, int N, A& sum, A& squares) const {
        sum = squares = 0;
#pragma unroll
        for (int p = 0; p < PACKS; ++p)
#pragma unroll
            for (int k = 0; k < V; ++k) {
                const int i = first + p * LANES * V + k;
                const A d = i >= 0 && i < N ? widen(packs[p].at[k]) - mean : A(0);
                sum += d;
                squares += d * d;
            }
    }

    __device__ __forceinline__ void write(T* y, const Affine<T>& affine, A mean, A rest, A scale, int N, bool is_aligned) {
#pragma unroll
        for (int p = 0; p < PACKS; ++p) {
            affine.apply(packs[p], first + p * LANES * V, N, mean, rest, scale);
            store(y, packs[p], first + p * LANES * V, N, is_aligned);
        }
    }
};

// The mean is rounded; `rest`, the mean of the differences to it, gives back what was lost. It matters when the mean is
// large beside the spread.
template <typename A>
__device__ __forceinline__ A scale_of(A squares, A rest, int N, double eps) {
    const A variance = isinf(squares) ? squares : squares / A(N) - rest * rest;
    // A comparison and not fmax: NaN stays NaN.
    return A(1) / sqrt((variance < A(0) ? A(0) : variance) + A(eps));
}

// Short rows: `LANES` threads a row, no shared memory and no barrier.
template <typename T, int LANES, int PACKS>
__global__ void __launch_bounds__(128)
    layer_norm_warp(const T* __restrict__ x, const T* __restrict__ weight, const T* __restrict__ bias, T* __restrict__ y,
                    long long M, int N, double eps) {
    using A = typename Wide<T>::type;
    const long long row = static_cast<long long>(blockIdx.x) * (128 / LANES) + threadIdx.x / LANES;
    // Threads past the last row stay for the shuffles and work on an empty row.
    const int length = row < M ? N : 0;
    x += row < M ? row * N : 0;
    y += row < M ? row * N : 0;
    Row<T, LANES, PACKS> cached;
    cached.read(x, threadIdx.x % LANES, length);
    const A mean = sum_lanes<LANES>(cached.mean(N));
    A rest, squares;
    cached.differences(mean, length, rest, squares);
    rest = sum_lanes<LANES>(rest) / A(N);
    squares = sum_lanes<LANES>(squares);
    const Affine<T> affine(weight, bias, x);
    cached.write(y, affine, mean, rest, scale_of(squares, rest, N, eps), length, offset_in_pack(x) == offset_in_pack(y));
}

// Middle rows: one block a row.
template <typename T, int THREADS, int PACKS>
__global__ void __launch_bounds__(THREADS, THREADS < 768 ? 768 / THREADS : 1)
    layer_norm_block(const T* __restrict__ x, const T* __restrict__ weight, const T* __restrict__ bias, T* __restrict__ y,
                     int N, double eps) {
    using A = typename Wide<T>::type;
    __shared__ A slots[3][THREADS / 32];
    x += static_cast<long long>(blockIdx.x) * N;
    y += static_cast<long long>(blockIdx.x) * N;
    Row<T, THREADS, PACKS> cached;
    cached.read(x, threadIdx.x, N);
    const A mean = sum_block<THREADS / 32>(cached.mean(N), slots[0]);
    A rest, squares;
    cached.differences(mean, N, rest, squares);
    rest = sum_block<THREADS / 32>(rest, slots[1]) / A(N);
    squares = sum_block<THREADS / 32>(squares, slots[2]);
    const Affine<T> affine(weight, bias, x);
    cached.write(y, affine, mean, rest, scale_of(squares, rest, N, eps), N, offset_in_pack(x) == offset_in_pack(y));
}

// Count, mean and sum of squared differences of a part of a row; parts are merged by the formula of Chan, Golub and
// LeVeque (1979), which does not cancel.
template <typename A>
struct Moments {
    A count, mean, squares;

    __device__ __forceinline__ void merge(A other_count, A other_mean, A other_squares) {
        const A total = count + other_count;
        if (total == A(0)) return;
        const A d = other_mean - mean;
        mean += d * (other_count / total);
        squares += other_squares + d * d * (count * (other_count / total));
        count = total;
    }

    __device__ __forceinline__ void merge_lanes() {
#pragma unroll
        for (int step = 16; step > 0; step /= 2) {
            const A c = __shfl_down_sync(0xffffffffu, count, step);
            const A m = __shfl_down_sync(0xffffffffu, mean, step);
            const A q = __shfl_down_sync(0xffffffffu, squares, step);
            merge(c, m, q);
        }
    }
};

// Long rows, and views that start off a boundary.
template <typename T>
__global__ void __launch_bounds__(512)
    layer_norm_long(const T* __restrict__ x, const T* __restrict__ weight, const T* __restrict__ bias, T* __restrict__ y,
                    int N, double eps) {
    using A = typename Wide<T>::type;
    constexpr int V = Pack<T>::size, UNROLL = 4;
    __shared__ A slots[3][16];
    x += static_cast<long long>(blockIdx.x) * N;
    y += static_cast<long long>(blockIdx.x) * N;
    const int offset = offset_in_pack(x);
    // Everything is measured from the row's first element: a mean that is large beside the spread then rounds nothing away.
    const A origin = N > 0 ? widen(x[0]) : A(0);
    Moments<A> part = {A(0), A(0), A(0)};
    for (int i = static_cast<int>(threadIdx.x) * V - offset; i < N; i += 512 * UNROLL * V) {
        Pack<T> loaded[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) loaded[u] = load(x, i + u * 512 * V, N, true);
        A count = 0, sum = 0, squares = 0;
#pragma unroll
        for (int u = 0; u < UNROLL; ++u)
#pragma unroll
            for (int k = 0; k < V; ++k) {
                const int j = i + u * 512 * V + k;
                count += j >= 0 && j < N ? A(1) : A(0);
                sum += j >= 0 && j < N ? widen(loaded[u].at[k]) - origin : A(0);
            }
        if (count == A(0)) continue;
        const A mean = sum / count;
#pragma unroll
        for (int u = 0; u < UNROLL; ++u)
#pragma unroll
            for (int k = 0; k < V; ++k) {
                const int j = i + u * 512 * V + k;
                const A d = j >= 0 && j < N ? widen(loaded[u].at[k]) - origin - mean : A(0);
                squares += d * d;
            }
        part.merge(count, mean, squares);
    }
    part.merge_lanes();
    if (threadIdx.x % 32 == 0) {
        slots[0][threadIdx.x / 32] = part.count;
        slots[1][threadIdx.x / 32] = part.mean;
        slots[2][threadIdx.x / 32] = part.squares;
    }
    __syncthreads();
    Moments<A> whole = {slots[0][0], slots[1][0], slots[2][0]};
    for (int w = 1; w < 16; ++w) whole.merge(slots[0][w], slots[1][w], slots[2][w]);

    const A scale = scale_of(whole.squares, A(0), N, eps);
    const Affine<T> affine(weight, bias, x);
    const bool is_y_aligned = offset_in_pack(y) == offset;
    for (int i = static_cast<int>(threadIdx.x) * V - offset; i < N; i += 512 * V) {
        Pack<T> pack = load(x, i, N, true);
        affine.apply(pack, i, N, origin, whole.mean, scale);
        store(y, pack, i, N, is_y_aligned);
    }
}
