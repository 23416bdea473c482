// LLM-CUDA's own kernel: how often each number from 0 to bins - 1 occurs.
//! bincount(x: T[N], bins: int32) -> counts: int64[bins] = 0    where T in {uint8, int8, int16, uint16, int32, uint32, int64}
//! let copies = max(1, min(8, 8192 // max(bins, 1)))
//! let blocks = min(ceil_div(N * sizeof(T), 65536), 8 * num_sms)
//! when bins <= 8192:
//!     count_in_shared<T><<<blocks, 256>>>(x, counts, N, bins, copies)
//! otherwise:
//!     count_in_global<T><<<blocks, 256>>>(x, counts, N, bins)

// Every block counts into shared memory: up to eight copies of the bins, one a warp, so that warps seldom meet in one
// counter. Integer addition does not depend on the order, so the result is always the same.

template <typename T>
struct alignas(16) Pack {
    static constexpr int size = 16 / sizeof(T);
    T at[size];
};

// Calls visit(value) for this thread's share of x; packs of 16 bytes where x allows it.
template <typename T, typename Visit>
__device__ __forceinline__ void for_each(const T* x, long long N, Visit visit) {
    constexpr int V = Pack<T>::size, UNROLL = 2;
    const long long offset = (reinterpret_cast<size_t>(x) & 15) / sizeof(T);
    const long long threads = static_cast<long long>(gridDim.x) * 256;
    const long long me = static_cast<long long>(blockIdx.x) * 256 + threadIdx.x;
    for (long long first = me * V - offset; first < N; first += UNROLL * threads * V) {
        Pack<T> loaded[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) {
            const long long i = first + u * threads * V;
            if (i >= 0 && i + V <= N) loaded[u] = *reinterpret_cast<const Pack<T>*>(x + i);
        }
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) {
            const long long i = first + u * threads * V;
            if (i >= 0 && i + V <= N) {
#pragma unroll
                for (int k = 0; k < V; ++k) visit(loaded[u].at[k]);
            } else {
                for (long long j = i < 0 ? 0 : i; j < i + V && j < N; ++j) visit(x[j]);
            }
        }
    }
}

// Numbers without a bin are not counted, and never write.
template <typename T>
__device__ __forceinline__ bool has_bin(T v, int bins) {
    return static_cast<long long>(v) >= 0 && static_cast<long long>(v) < bins;
}

__device__ __forceinline__ void add(long long* counter, unsigned long long n) {
    atomicAdd(reinterpret_cast<unsigned long long*>(counter), n);
}

template <typename T>
__global__ void __launch_bounds__(256)
    count_in_shared(const T* __restrict__ x, long long* __restrict__ counts, long long N, int bins, int copies) {
    __shared__ unsigned counters[8192];
    for (int i = threadIdx.x; i < bins * copies; i += 256) counters[i] = 0;
    __syncthreads();
    unsigned* mine = counters + (threadIdx.x / 32 % copies) * bins;
    for_each(x, N, [&](T v) {
        if (has_bin(v, bins)) atomicAdd(mine + v, 1u);
    });
    __syncthreads();
    for (int bin = threadIdx.x; bin < bins; bin += 256) {
        unsigned long long total = 0;
        for (int c = 0; c < copies; ++c) total += counters[c * bins + bin];
        if (total != 0) add(counts + bin, total);
    }
}

// Too many bins for shared memory: collisions are rare among so many.
template <typename T>
__global__ void __launch_bounds__(256)
    count_in_global(const T* __restrict__ x, long long* __restrict__ counts, long long N, int bins) {
    for_each(x, N, [&](T v) {
        if (has_bin(v, bins)) add(counts + static_cast<long long>(v), 1);
    });
}
