// LLM-CUDA's own kernel: softmax over the last axis.
//! softmax(x: T[M, N]) -> y: T[M, N]    where T in {float32, float16, bfloat16, float64}
//! let V = 16 // sizeof(T)
//! let packs = ceil_div(N, V) + min(N % V, 1)
//! when not aligned(x, 16):
//!     softmax_long<T><<<M, 1024>>>(x, y, N)
//! when packs > 2048 and packs <= 7168 and sizeof(T) == 2 and packs * 16 + 256 <= max_shared_bytes:
//!     softmax_shared<T><<<M, 512, packs * 16>>>(x, y, N)
//! when packs > 4096 and packs <= 8192 and sizeof(T) == 4:
//!     softmax_block<T, 1024, 8, 1><<<M, 1024>>>(x, y, N)
//! when packs > 4096:
//!     softmax_long<T><<<M, 1024>>>(x, y, N)
//! when packs > 2048:
//!     softmax_block<T, 1024, 4, 1><<<M, 1024>>>(x, y, N)
//! when packs > 1024 and sizeof(T) == 4:
//!     softmax_block<T, 256, 8, 4><<<M, 256>>>(x, y, N)
//! when packs > 1024:
//!     softmax_block<T, 512, 4, 2><<<M, 512>>>(x, y, N)
//! when packs > 512:
//!     softmax_block<T, 256, 4, 4><<<M, 256>>>(x, y, N)
//! when packs > 256:
//!     softmax_block<T, 128, 4, 8><<<M, 128>>>(x, y, N)
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

// A row is read once: into registers, or a longer one of 16-bit elements into shared memory; the longest are read twice,
// the second time mostly from L2. Rows start at any element, so packs are laid over 16-byte boundaries of memory, not over
// the row: only the first and the last pack of an odd row fall back to single elements.

// 16 bytes of elements of T.
template <typename T>
struct Pack {
    static constexpr int size = 16 / sizeof(T);
    uint4 raw;
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



__device__ __forceinline__ float2 widen_pair(unsigned int pair, const __nv_bfloat16*) {
    return make_float2(__uint_as_float(pair << 16), __uint_as_float(pair & 0xffff0000u));
}
__device__ __forceinline__ float2 widen_pair(unsigned int pair, const __half*) {
    return __half22float2(*reinterpret_cast<const __half2*>(&pair));
}
__device__ __forceinline__ unsigned int narrow_pair(float low, float high, const __nv_bfloat16*) {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
    return *reinterpret_cast<const unsigned int*>(&pair);
}
__device__ __forceinline__ unsigned int narrow_pair(float low, float high, const __half*) {
    const __half2 pair = __floats2half2_rn(low, high);
    return *reinterpret_cast<const unsigned int*>(&pair);
}

// All elements of a pack, widened, and back.
template <typename T>
__device__ __forceinline__ void widen(const Pack<T>& pack, float (&v)[8]) {
    const unsigned int words[4] = {pack.raw.x, pack.raw.y, pack.raw.z, pack.raw.w};
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        const float2 pair = widen_pair(words[k], static_cast<const T*>(nullptr));
        v[2 * k] = pair.x;
        v[2 * k + 1] = pair.y;
    }
}
__device__ __forceinline__ void widen(const Pack<float>& pack, float (&v)[4]) {
    v[0] = __uint_as_float(pack.raw.x);
    v[1] = __uint_as_float(pack.raw.y);
    v[2] = __uint_as_float(pack.raw.z);
    v[3] = __uint_as_float(pack.raw.w);
}
__device__ __forceinline__ void widen(const Pack<double>& pack, double (&v)[2]) {
    v[0] = __hiloint2double(static_cast<int>(pack.raw.y), static_cast<int>(pack.raw.x));
    v[1] = __hiloint2double(static_cast<int>(pack.raw.w), static_cast<int>(pack.raw.z));
}
template <typename T>
__device__ __forceinline__ void narrow(Pack<T>& pack, const float (&v)[8]) {
    const T* type = nullptr;
    pack.raw = make_uint4(narrow_pair(v[0], v[1], type), narrow_pair(v[2], v[3], type), narrow_pair(v[4], v[5], type),
                          narrow_pair(v[6], v[7], type));
}
__device__ __forceinline__ void narrow(Pack<float>& pack, const float (&v)[4]) {
    pack.raw = make_uint4(__float_as_uint(v[0]), __float_as_uint(v[1]), __float_as_uint(v[2]), __float_as_uint(v[3]));
}
__device__ __forceinline__ void narrow(Pack<double>& pack, const double (&v)[2]) {
    pack.raw = make_uint4(static_cast<unsigned int>(__double2loint(v[0])), static_cast<unsigned int>(__double2hiint(v[0])),
                          static_cast<unsigned int>(__double2loint(v[1])), static_cast<unsigned int>(__double2hiint(v[1])));
}

// Loads elements [first, first + Pack::size) of the row; those outside it become -inf, which no step notices.
template <typename T>
__device__ __forceinline__ Pack<T> load(const T* row, int first, int N) {
    using A = typename Wide<T>::type;
    Pack<T> pack;
    if (first >= 0 && first + Pack<T>::size <= N) {
        pack.raw = *reinterpret_cast<const uint4*>(row + first);
    } else {
        A v[Pack<T>::size];
#pragma unroll
        for (int k = 0; k < Pack<T>::size; ++k) {
            const bool inside = first + k >= 0 && first + k < N;
            v[k] = inside ? widen(row[first + k]) : -static_cast<A>(INFINITY);
        }
        narrow(pack, v);
    }
    return pack;
}

// Past the caches' other contents: nobody here reads it again. And the compiler does not split what it does not see.
template <typename T>
__device__ __forceinline__ void store(T* row, const Pack<T>& pack, int first, int N, bool same_offset) {
    if (same_offset && first >= 0 && first + Pack<T>::size <= N) {
        __stcs(reinterpret_cast<uint4*>(row + first), pack.raw);
    } else {
        typename Wide<T>::type v[Pack<T>::size];
        widen(pack, v);
#pragma unroll
        for (int k = 0; k < Pack<T>::size; ++k) {
            if (first + k >= 0 && first + k < N) narrow(row[first + k], v[k]);
        }
    }
}

template <typename T>
__device__ __forceinline__ typename Wide<T>::type largest_of(const Pack<T>& pack) {
    typename Wide<T>::type v[Pack<T>::size];
    widen(pack, v);
    auto m = v[0];
#pragma unroll
    for (int k = 1; k < Pack<T>::size; ++k) m = larger(m, v[k]);
    return m;
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
    // Types as wide as the accumulator keep their exponentials; 16-bit ones would round twice and compute them again.
    static constexpr bool KEEPS = sizeof(T) == sizeof(A);
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
        for (int p = 0; p < PACKS; ++p) m = larger(m, largest_of(packs[p]));
        return m;
    }

    // Sum of exponentials. The padding adds 0, and NaN only where the whole row is -inf and its result NaN.
    __device__ __forceinline__ A exponentiate(A m) {
        A s = 0;
#pragma unroll
        for (int p = 0; p < PACKS; ++p) {
            A v[V];
            widen(packs[p], v);
#pragma unroll
            for (int k = 0; k < V; ++k) s += v[k] = exponential<T>(v[k] - m);
            if (KEEPS) narrow(packs[p], v);
        }
        return s;
    }

    __device__ __forceinline__ void write(T* row, A m, A s, int N, bool same_offset) {
        const A scale = A(1) / s;
#pragma unroll
        for (int p = 0; p < PACKS; ++p) {
            A v[V];
            widen(packs[p], v);
#pragma unroll
            for (int k = 0; k < V; ++k) v[k] = (KEEPS ? v[k] : exponential<T>(v[k] - m)) * scale;
            narrow(packs[p], v);
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
    const auto s = reduce_lanes<Total, LANES>(cached.exponentiate(m));
    cached.write(y + start, m, s, length, has_same_offset(x + start, y + start));
}

// Middle rows: one block a row; at least `RESIDENT` blocks a multiprocessor.
template <typename T, int THREADS, int PACKS, int RESIDENT>
__global__ void __launch_bounds__(THREADS, RESIDENT) softmax_block(const T* __restrict__ x, T* __restrict__ y, int N) {
    using A = typename Wide<T>::type;
    __shared__ A slots[2][THREADS / 32];
    x += static_cast<long long>(blockIdx.x) * N;
    y += static_cast<long long>(blockIdx.x) * N;
    Row<T, THREADS, PACKS> cached;
    cached.read(x, threadIdx.x, N);
    const A m = reduce_block<Largest, THREADS / 32>(cached.largest(), slots[0]);
    const A s = reduce_block<Total, THREADS / 32>(cached.exponentiate(m), slots[1]);
    cached.write(y, m, s, N, has_same_offset(x, y));
}

// Long rows of 16-bit elements: two blocks of 512 hold a row each in shared memory, so that one computes while the other reads.
template <typename T>
__global__ void __launch_bounds__(512, 2) softmax_shared(const T* __restrict__ x, T* __restrict__ y, int N) {
    using A = typename Wide<T>::type;
    constexpr int V = Pack<T>::size, THREADS = 512, UNROLL = 4;
    extern __shared__ uint4 row[];
    __shared__ A slots[2][THREADS / 32];
    x += static_cast<long long>(blockIdx.x) * N;
    y += static_cast<long long>(blockIdx.x) * N;
    const int offset = offset_in_pack(x);
    const int packs = (N + offset + V - 1) / V;
    A m = Largest::empty<A>();
    for (int base = threadIdx.x; base < packs; base += THREADS * UNROLL) {
        Pack<T> loaded[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) loaded[u] = load(x, (base + u * THREADS) * V - offset, N);
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) {
            m = larger(m, largest_of(loaded[u]));
            if (base + u * THREADS < packs) row[base + u * THREADS] = loaded[u].raw;
        }
    }
    m = reduce_block<Largest, THREADS / 32>(m, slots[0]);
    A s = 0;
#pragma unroll 4
    for (int p = threadIdx.x; p < packs; p += THREADS) {
        A v[V];
        widen(Pack<T>{row[p]}, v);
#pragma unroll
        for (int k = 0; k < V; ++k) s += exponential<T>(v[k] - m);
    }
    s = reduce_block<Total, THREADS / 32>(s, slots[1]);
    const A scale = A(1) / s;
    const bool same_offset = has_same_offset(x, y);
#pragma unroll 4
    for (int p = threadIdx.x; p < packs; p += THREADS) {
        A v[V];
        Pack<T> pack{row[p]};
        widen(pack, v);
#pragma unroll
        for (int k = 0; k < V; ++k) v[k] = exponential<T>(v[k] - m) * scale;
        narrow(pack, v);
        store(y, pack, p * V - offset, N, same_offset);
    }
}

// The longest rows, and views that start off a boundary: the maximum and the sum in one pass (online softmax, Milakov and
// Gimelshein 2018), the result in a second.
template <typename T>
__global__ void __launch_bounds__(1024, sizeof(T) == 8 ? 1 : 2) softmax_long(const T* __restrict__ x, T* __restrict__ y, int N) {
    using A = typename Wide<T>::type;
    constexpr int V = Pack<T>::size, THREADS = 1024, UNROLL = sizeof(T) == 4 ? 4 : 2;
    __shared__ A slots[2][THREADS / 32];
    x += static_cast<long long>(blockIdx.x) * N;
    y += static_cast<long long>(blockIdx.x) * N;
    const int offset = offset_in_pack(x);
    const int packs = (N + offset + V - 1) / V;
    A m = Largest::empty<A>(), s = 0;
    for (int base = threadIdx.x; base < packs; base += THREADS * UNROLL) {
        Pack<T> loaded[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) loaded[u] = load(x, (base + u * THREADS) * V - offset, N);
        A m_new = m;
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) m_new = larger(m_new, largest_of(loaded[u]));
        if (m_new > m) {
            s *= exponential<T>(m - m_new);
            m = m_new;
        }
        // As long as only -inf was seen, -inf - -inf would be NaN.
        if (m == Largest::empty<A>()) continue;
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) {
            A v[V];
            widen(loaded[u], v);
#pragma unroll
            for (int k = 0; k < V; ++k) s += exponential<T>(v[k] - m);
        }
    }
    const A m_row = reduce_block<Largest, THREADS / 32>(m, slots[0]);
    s = reduce_block<Total, THREADS / 32>(m == Largest::empty<A>() ? s : s * exponential<T>(m - m_row), slots[1]);
    const A scale = A(1) / s;
    const bool same_offset = has_same_offset(x, y);
#pragma unroll 2
    for (int p = threadIdx.x; p < packs; p += THREADS) {
        A v[V];
        Pack<T> pack = load(x, p * V - offset, N);
        widen(pack, v);
#pragma unroll
        for (int k = 0; k < V; ++k) v[k] = exponential<T>(v[k] - m_row) * scale;
        narrow(pack, v);
        store(y, pack, p * V - offset, N, same_offset);
    }
}
