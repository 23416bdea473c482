// LLM-CUDA's own kernel: softmax over the last axis.
//! softmax(x: T[M, N]) -> y: T[M, N]    where T in {float32, float16, bfloat16, float64}
//! let V = 16 // sizeof(T)
//! let packs = ceil_div(N, V) + min(N % V, 1)
//! when packs > 4096 or not aligned(x, 16):
//!     softmax_long<T><<<M, 512>>>(x, y, N)
//! when packs > 2048:
//!     softmax_block<T, 1024, 4><<<M, 1024>>>(x, y, N)
//! when packs > 1024:
//!     softmax_block<T, 512, 4><<<M, 512>>>(x, y, N)
//! when packs > 512:
//!     softmax_block<T, 256, 4><<<M, 256>>>(x, y, N)
//! when packs > 256:
//!     softmax_block<T, 128, 4><<<M, 128>>>(x, y, N)
//! when packs > 128:
//!     softmax_warp<T, 32, 8><<<ceil_div(M, 4), 128>>>(x, y, M, N)
//! when packs > 32:
//!     softmax_warp<T, 32, 4><<<ceil_div(M, 4), 128>>>(x, y, M, N)
//! when packs > 8:
//!     softmax_warp<T, 16, 2><<<ceil_div(M, 8), 128>>>(x, y, M, N)
//! otherwise:
//!     softmax_warp<T, 4, 2><<<ceil_div(M, 32), 128>>>(x, y, M, N)
#include <cuda_bf16.h>
#include <cuda_fp16.h>

// A row up to 64 KiB is read once and kept in registers; a longer one is read twice, the second time mostly from L2.
// Rows start at any element, so packs are laid over 16-byte boundaries of memory, not over the row: only the first
// and the last pack of an odd row fall back to single elements.

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

// The last bits of expf would be rounded away in a 16-bit result: the hardware exponential is enough there.
template <typename T>
__device__ __forceinline__ float exponential(float v) {
    return sizeof(T) == 2 ? __expf(v) : expf(v);
}
template <typename T>
__device__ __forceinline__ double exponential(double v) {
    return exp(v);
}

__device__ __forceinline__ float larger(float a, float b) { return fmaxf(a, b); }
__device__ __forceinline__ double larger(double a, double b) { return fmax(a, b); }

// How many elements the row starts past a 16-byte boundary.
template <typename T>
__device__ __forceinline__ int offset_in_pack(const T* row) {
    return static_cast<int>((reinterpret_cast<size_t>(row) & 15) / sizeof(T));
}

// Loads elements [first, first + Pack::size) of the row; those outside it become -inf, which no step notices.
template <typename T>
__device__ __forceinline__ Pack<T> load(const T* row, int first, int N) {
    Pack<T> pack;
    if (first >= 0 && first + Pack<T>::size <= N) {
        pack = *reinterpret_cast<const Pack<T>*>(row + first);
    } else {
#pragma unroll
        for (int k = 0; k < Pack<T>::size; ++k) {
            const bool inside = first + k >= 0 && first + k < N;
            if (inside) {
                pack.at[k] = row[first + k];
            } else {
                narrow(pack.at[k], -static_cast<typename Wide<T>::type>(INFINITY));
            }
        }
    }
    return pack;
}

template <typename T>
__device__ __forceinline__ void store(T* row, const Pack<T>& pack, int first, int N, bool same_offset) {
    if (same_offset && first >= 0 && first + Pack<T>::size <= N) {
        *reinterpret_cast<Pack<T>*>(row + first) = pack;
    } else {
#pragma unroll
        for (int k = 0; k < Pack<T>::size; ++k) {
            if (first + k >= 0 && first + k < N) row[first + k] = pack.at[k];
        }
    }
}

struct Largest {
    template <typename A>
    __device__ static A join(A a, A b) { return larger(a, b); }
    template <typename A>
    __device__ static A empty() { return -static_cast<A>(INFINITY); }
};

struct Total {
    template <typename A>
    __device__ static A join(A a, A b) { return a + b; }
    template <typename A>
    __device__ static A empty() { return A(0); }
};

template <typename Op, int LANES, typename A>
__device__ __forceinline__ A reduce_lanes(A v) {
#pragma unroll
    for (int step = LANES / 2; step > 0; step /= 2) v = Op::join(v, __shfl_xor_sync(0xffffffffu, v, step, LANES));
    return v;
}

// Every thread gets the result. `slots` is used once only, so that one barrier is enough.
template <typename Op, int WARPS, typename A>
__device__ __forceinline__ A reduce_block(A v, A* slots) {
    v = reduce_lanes<Op, 32>(v);
    if (threadIdx.x % 32 == 0) slots[threadIdx.x / 32] = v;
    __syncthreads();
    v = threadIdx.x % 32 < WARPS ? slots[threadIdx.x % 32] : Op::template empty<A>();
    return reduce_lanes<Op, 32>(v);
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
        for (int p = 0; p < PACKS; ++p) packs[p] = load(row, first + p * LANES * V, N);
    }

    __device__ __forceinline__ A largest() const {
        A m = Largest::empty<A>();
#pragma unroll
        for (int p = 0; p < PACKS; ++p)
#pragma unroll
            for (int k = 0; k < V; ++k) m = larger(m, widen(packs[p].at[k]));
        return m;
    }

    __device__ __forceinline__ bool is_inside(int p, int k, int N) const {
        const int i = first + p * LANES * V + k;
        return i >= 0 && i < N;
    }

    // Sum of exponentials. Types as wide as the accumulator keep them; 16-bit ones would round twice and compute them again.
    // The padding is masked here: where the whole row is -inf, its difference to the maximum is NaN.
    __device__ __forceinline__ A exponentiate(A m, int N) {
        A s = 0;
#pragma unroll
        for (int p = 0; p < PACKS; ++p)
#pragma unroll
            for (int k = 0; k < V; ++k) {
                const A e = exponential<T>(widen(packs[p].at[k]) - m);
                if (is_inside(p, k, N)) s += e;
                if (sizeof(T) == sizeof(A)) narrow(packs[p].at[k], e);
            }
        return s;
    }

    __device__ __forceinline__ void write(T* row, A m, A s, int N, bool same_offset) {
        const A scale = A(1) / s;
#pragma unroll
        for (int p = 0; p < PACKS; ++p) {
#pragma unroll
            for (int k = 0; k < V; ++k) {
                const A v = widen(packs[p].at[k]);
                narrow(packs[p].at[k], (sizeof(T) == sizeof(A) ? v : exponential<T>(v - m)) * scale);
            }
            store(row, packs[p], first + p * LANES * V, N, same_offset);
        }
    }
};

template <typename T>
__device__ __forceinline__ bool has_same_offset(const T* x, const T* y) {
    return offset_in_pack(x) == offset_in_pack(y);
}

// Short rows: `LANES` threads a row, no shared memory and no barrier.
template <typename T, int LANES, int PACKS>
__global__ void __launch_bounds__(128) softmax_warp(const T* __restrict__ x, T* __restrict__ y, long long M, int N) {
    const long long row = static_cast<long long>(blockIdx.x) * (128 / LANES) + threadIdx.x / LANES;
    // Threads past the last row stay for the shuffles and work on an empty row.
    const int length = row < M ? N : 0;
    const long long start = row < M ? row * N : 0;
    Row<T, LANES, PACKS> cached;
    cached.read(x + start, threadIdx.x % LANES, length);
    const auto m = reduce_lanes<Largest, LANES>(cached.largest());
    const auto s = reduce_lanes<Total, LANES>(cached.exponentiate(m, length));
    cached.write(y + start, m, s, length, has_same_offset(x + start, y + start));
}

// Middle rows: one block a row.
template <typename T, int THREADS, int PACKS>
__global__ void __launch_bounds__(THREADS, 1024 / THREADS) softmax_block(const T* __restrict__ x, T* __restrict__ y, int N) {
    using A = typename Wide<T>::type;
    __shared__ A slots[2][THREADS / 32];
    x += static_cast<long long>(blockIdx.x) * N;
    y += static_cast<long long>(blockIdx.x) * N;
    Row<T, THREADS, PACKS> cached;
    cached.read(x, threadIdx.x, N);
    const A m = reduce_block<Largest, THREADS / 32>(cached.largest(), slots[0]);
    const A s = reduce_block<Total, THREADS / 32>(cached.exponentiate(m, N), slots[1]);
    cached.write(y, m, s, N, has_same_offset(x, y));
}

// Long rows and views that start off a boundary: the maximum and the sum in one pass (online softmax, Milakov and
// Gimelshein 2018), the result in a second.
template <typename T>
__global__ void __launch_bounds__(512) softmax_long(const T* __restrict__ x, T* __restrict__ y, int N) {
    using A = typename Wide<T>::type;
    constexpr int V = Pack<T>::size, UNROLL = 4;
    __shared__ A slots[2][16];
    x += static_cast<long long>(blockIdx.x) * N;
    y += static_cast<long long>(blockIdx.x) * N;
    const int offset = offset_in_pack(x);
    const int packs = (N + offset + V - 1) / V;

    A m = Largest::empty<A>(), s = 0;
    for (int base = threadIdx.x; base < packs; base += 512 * UNROLL) {
        Pack<T> loaded[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) loaded[u] = load(x, (base + u * 512) * V - offset, N);
        A m_new = m;
#pragma unroll
        for (int u = 0; u < UNROLL; ++u)
#pragma unroll
            for (int k = 0; k < V; ++k) m_new = larger(m_new, widen(loaded[u].at[k]));
        // As long as only -inf was seen there is nothing to rescale, and -inf - -inf would be NaN.
        if (m_new > m) {
            s *= exponential<T>(m - m_new);
            m = m_new;
        }
#pragma unroll
        for (int u = 0; u < UNROLL; ++u)
#pragma unroll
            for (int k = 0; k < V; ++k) {
                const int i = (base + u * 512) * V - offset + k;
                const A v = widen(loaded[u].at[k]);
                if (i >= 0 && i < N && v != Largest::empty<A>()) s += exponential<T>(v - m);
            }
    }
    const A m_row = reduce_block<Largest, 16>(m, slots[0]);
    s = reduce_block<Total, 16>(m == Largest::empty<A>() ? s : s * exponential<T>(m - m_row), slots[1]);

    const A scale = A(1) / s;
    const bool same_offset = has_same_offset(x, y);
    for (int p = threadIdx.x; p < packs; p += 512) {
        Pack<T> pack = load(x, p * V - offset, N);
#pragma unroll
        for (int k = 0; k < V; ++k) narrow(pack.at[k], exponential<T>(widen(pack.at[k]) - m_row) * scale);
        store(y, pack, p * V - offset, N, same_offset);
    }
}
