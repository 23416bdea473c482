// LLM-CUDA's own kernel: the prefix sum (cumulative sum) of every row.
//! cumsum(x: T[M, N]) -> y: T[M, N]    where T in {float32, float16, bfloat16, float64}
//! let tile = 131072 // sizeof(T)
//! let tiles = ceil_div(N, tile)
//! when tiles > 1 and M < num_sms:
//!     scratch carries: float64[M, tiles]
//!     sum_tiles<T><<<(tiles, M), 512>>>(x, carries, N, tile)
//!     scan_carries<<<ceil_div(M, 4), 128>>>(carries, M, tiles)
//!     scan_tiles<T><<<(tiles, M), 512>>>(x, y, carries, N, tile)
//! when N * sizeof(T) > 8192:
//!     scan_row<T, 16><<<M, 512>>>(x, y, N)
//! when N * sizeof(T) > 2048:
//!     scan_row<T, 4><<<M, 128>>>(x, y, N)
//! otherwise:
//!     scan_short_rows<T><<<ceil_div(M, 4), 128>>>(x, y, M, N)
#include <cuda_bf16.h>
#include <cuda_fp16.h>

// A row is read once. A thread adds up its own 16-byte packs, shuffles scan the totals of a warp, one barrier joins the
// warps, and a carry runs from chunk to chunk. Packs are laid over 16-byte boundaries of memory, not over the row:
// elements outside the row count as zero.

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

constexpr int PACKS = 4;

template <typename T>
__device__ __forceinline__ int offset_in_pack(const T* at) {
    return static_cast<int>((reinterpret_cast<size_t>(at) & 15) / sizeof(T));
}

// Sum of `v` over the lanes below this one; `total` becomes the sum of all lanes. Lane 0 gets 0 without a subtraction,
// which would turn an infinity into NaN.
template <typename A>
__device__ __forceinline__ A sum_below(A v, A& total) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        const A other = __shfl_up_sync(0xffffffffu, v, step);
        if (lane >= step) v += other;
    }
    total = __shfl_sync(0xffffffffu, v, 31);
    const A below = __shfl_up_sync(0xffffffffu, v, 1);
    return lane == 0 ? A(0) : below;
}

// Packs of one warp, `PACKS` a lane, scanned within the warp.
template <typename T>
struct Segment {
    using A = typename Wide<T>::type;
    static constexpr int V = Pack<T>::size;
    A sums[PACKS][V];
    A total;

    __device__ __forceinline__ void read(const T* x, long long first, long long begin, long long end) {
        Pack<T> packs[PACKS];
#pragma unroll
        for (int p = 0; p < PACKS; ++p) {
            const long long i = first + p * 32 * V;
            if (i >= begin && i + V <= end) {
                packs[p] = *reinterpret_cast<const Pack<T>*>(x + i);
            } else {
#pragma unroll
                for (int k = 0; k < V; ++k) {
                    narrow(packs[p].at[k], A(0));
                    if (i + k >= begin && i + k < end) packs[p].at[k] = x[i + k];
                }
            }
        }
        total = 0;
#pragma unroll
        for (int p = 0; p < PACKS; ++p) {
            A sum = 0;
#pragma unroll
            for (int k = 0; k < V; ++k) {
                sum += widen(packs[p].at[k]);
                sums[p][k] = sum;
            }
            A all;
            const A before = sum_below(sum, all) + total;
            total += all;
#pragma unroll
            for (int k = 0; k < V; ++k) sums[p][k] += before;
        }
    }

    __device__ __forceinline__ void write(T* y, long long first, long long begin, long long end, A before, bool is_aligned) {
#pragma unroll
        for (int p = 0; p < PACKS; ++p) {
            const long long i = first + p * 32 * V;
            Pack<T> pack;
#pragma unroll
            for (int k = 0; k < V; ++k) narrow(pack.at[k], sums[p][k] + before);
            if (is_aligned && i >= begin && i + V <= end) {
                *reinterpret_cast<Pack<T>*>(y + i) = pack;
            } else {
#pragma unroll
                for (int k = 0; k < V; ++k) {
                    if (i + k >= begin && i + k < end) y[i + k] = pack.at[k];
                }
            }
        }
    }
};

// Scans elements [begin, end) of a row with `WARPS` warps; `carry` is the sum of everything before them.
template <typename T, int WARPS>
__device__ __forceinline__ void scan_range(const T* x, T* y, long long begin, long long end, typename Wide<T>::type carry) {
    using A = typename Wide<T>::type;
    constexpr int V = Pack<T>::size, CHUNK = WARPS * 32 * PACKS * V;
    // Two sets of totals by turns: one barrier a chunk is enough.
    __shared__ A totals[2][WARPS];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int offset = offset_in_pack(x + begin);
    const bool is_aligned = offset_in_pack(y + begin) == offset;
    int turn = 0;
    for (long long chunk = begin - offset; chunk < end; chunk += CHUNK) {
        const long long first = chunk + (warp * PACKS * 32 + lane) * V;
        Segment<T> segment;
        segment.read(x, first, begin, end);
        if (lane == 0) totals[turn][warp] = segment.total;
        __syncthreads();
        A before = carry;
        for (int w = 0; w < WARPS; ++w) {
            if (w < warp) before += totals[turn][w];
            carry += totals[turn][w];
        }
        segment.write(y, first, begin, end, before, is_aligned);
        turn ^= 1;
    }
}

template <typename T, int WARPS>
__global__ void __launch_bounds__(WARPS * 32) scan_row(const T* __restrict__ x, T* __restrict__ y, int N) {
    const long long start = static_cast<long long>(blockIdx.x) * N;
    scan_range<T, WARPS>(x + start, y + start, 0, N, 0);
}

// Short rows: one warp a row and no barrier.
template <typename T>
__global__ void __launch_bounds__(128) scan_short_rows(const T* __restrict__ x, T* __restrict__ y, long long M, int N) {
    using A = typename Wide<T>::type;
    constexpr int V = Pack<T>::size;
    const long long row = static_cast<long long>(blockIdx.x) * 4 + threadIdx.x / 32;
    if (row >= M) return;
    x += row * N;
    y += row * N;
    const int offset = offset_in_pack(x);
    const bool is_aligned = offset_in_pack(y) == offset;
    A carry = 0;
    for (long long chunk = -offset; chunk < N; chunk += 32 * PACKS * V) {
        const long long first = chunk + (threadIdx.x % 32) * V;
        Segment<T> segment;
        segment.read(x, first, 0, N);
        segment.write(y, first, 0, N, carry, is_aligned);
        carry += segment.total;
    }
}

// Few long rows are cut into tiles: the sum of each, the sums of the tiles before each, then the scan of each.
template <typename T>
__global__ void __launch_bounds__(512) sum_tiles(const T* __restrict__ x, double* __restrict__ carries, long long N, int tile) {
    using A = typename Wide<T>::type;
    __shared__ double slots[16];
    x += static_cast<long long>(blockIdx.y) * N;
    const long long begin = static_cast<long long>(blockIdx.x) * tile, end = min(N, begin + tile);
    A sum = 0;
    for (long long chunk = begin - offset_in_pack(x + begin); chunk < end; chunk += 512 * PACKS * Pack<T>::size) {
        Segment<T> segment;
        segment.read(x, chunk + (threadIdx.x / 32 * PACKS * 32 + threadIdx.x % 32) * Pack<T>::size, begin, end);
        sum += segment.total;
    }
    if (threadIdx.x % 32 == 0) slots[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        double total = 0;
        for (int w = 0; w < 16; ++w) total += slots[w];
        carries[static_cast<long long>(blockIdx.y) * gridDim.x + blockIdx.x] = total;
    }
}

// Replaces each tile's sum by the sum of the tiles before it; one warp a row.
__global__ void __launch_bounds__(128) scan_carries(double* __restrict__ carries, long long M, int tiles) {
    const long long row = static_cast<long long>(blockIdx.x) * 4 + threadIdx.x / 32;
    if (row >= M) return;
    carries += row * tiles;
    double carry = 0;
    for (int first = 0; first < tiles; first += 32) {
        const int t = first + threadIdx.x % 32;
        double total;
        const double below = sum_below(t < tiles ? carries[t] : 0.0, total);
        if (t < tiles) carries[t] = carry + below;
        carry += total;
    }
}

template <typename T>
__global__ void __launch_bounds__(512)
    scan_tiles(const T* __restrict__ x, T* __restrict__ y, const double* __restrict__ carries, long long N, int tile) {
    const long long row = static_cast<long long>(blockIdx.y) * N;
    const long long begin = static_cast<long long>(blockIdx.x) * tile;
    const double carry = carries[static_cast<long long>(blockIdx.y) * gridDim.x + blockIdx.x];
    scan_range<T, 16>(x + row, y + row, begin, min(N, begin + tile), static_cast<typename Wide<T>::type>(carry));
}
