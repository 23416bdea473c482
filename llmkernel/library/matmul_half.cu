// LLM-CUDA's own kernel: the matrix product of 16-bit floats on tensor cores, accumulated in float32.
//! matmul_half(a: T[B, M, K], b: T[B, K, N]) -> c: T[B, M, N]    where T in {float16, bfloat16}
//! let across = ceil_div(N, 128)
//! let down = ceil_div(M, 128)
//! when aligned(a, 16) and aligned(b, 16) and K % 8 == 0 and N % 8 == 0:
//!     matmul_tiles<T, true, Plain><<<across * down * B, 256>>>(a, b, c, M, N, K, across, down)
//! otherwise:
//!     matmul_tiles<T, false, Plain><<<across * down * B, 256>>>(a, b, c, M, N, K, across, down)
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

// A block of eight warps computes 128 × 128 of c, a warp 64 × 32 of it. Both operands pass through shared memory in slices
// of 32 columns of a and rows of b; while one slice is used, the next is on its way in registers. Rows in shared memory are
// 16 bytes longer than the slice, so that the fragments' loads fall into different banks.
using namespace nvcuda;

constexpr int TILE = 128, DEPTH = 32, A_STRIDE = DEPTH + 8, B_STRIDE = TILE + 8, STAGE_STRIDE = 20;

template <typename T>
struct alignas(16) Pack {
    static constexpr int size = 16 / sizeof(T);
    T at[size];
};

__device__ __forceinline__ void narrow(__half& to, float v) { to = __float2half_rn(v); }
__device__ __forceinline__ void narrow(__nv_bfloat16& to, float v) { to = __float2bfloat16_rn(v); }

// How b is laid out: as (K, N), or turned as (N, K), the weights of a linear layer.
struct Plain {
    static constexpr bool is_turned = false;
    using Layout = wmma::row_major;
};
struct Turned {
    static constexpr bool is_turned = true;
    using Layout = wmma::col_major;
};

// Which tile a block computes. Blocks walk down eight tiles before they step to the right: what they read is then still in L2.
struct Place {
    long long batch;
    int row, column;

    __device__ __forceinline__ Place(int across, int down) {
        constexpr unsigned GROUP = 8;
        const unsigned in_batch = static_cast<unsigned>(across) * down, block = blockIdx.x % in_batch;
        batch = blockIdx.x / in_batch;
        const unsigned first = block / (GROUP * across) * GROUP, rows = min(GROUP, down - first);
        row = (first + block % (GROUP * across) % rows) * TILE;
        column = block % (GROUP * across) / rows * TILE;
    }
};

// One pack of a (rows, columns) matrix, zeros outside it.
template <bool IS_PACKED, typename T>
__device__ __forceinline__ Pack<T> load(const T* matrix, int row, int column, int rows, int columns) {
    Pack<T> pack;
    const T* from = matrix + static_cast<long long>(row) * columns + column;
    if (IS_PACKED && row < rows && column < columns) return *reinterpret_cast<const Pack<T>*>(from);
#pragma unroll
    for (int k = 0; k < Pack<T>::size; ++k) {
        narrow(pack.at[k], 0.0f);
        if (!IS_PACKED && row < rows && column + k < columns) pack.at[k] = from[k];
    }
    return pack;
}

template <typename T, bool IS_PACKED, typename B>
__global__ void __launch_bounds__(256, 2)
    matmul_tiles(const T* __restrict__ a, const T* __restrict__ b, T* __restrict__ c, int M, int N, int K, int across,
                 int down) {
    constexpr int V = Pack<T>::size, LOADS = TILE * DEPTH / V / 256;
    constexpr int A_BYTES = TILE * A_STRIDE * sizeof(T);
    constexpr int B_BYTES = B::is_turned ? A_BYTES : DEPTH * B_STRIDE * sizeof(T);
    __shared__ __align__(128) unsigned char bytes[2 * (A_BYTES + B_BYTES)];
    auto a_slice = [&](int turn) { return reinterpret_cast<T*>(bytes + turn * A_BYTES); };
    auto b_slice = [&](int turn) { return reinterpret_cast<T*>(bytes + 2 * A_BYTES + turn * B_BYTES); };
    const Place place(across, down);
    a += place.batch * M * K;
    b += place.batch * K * N;
    c += place.batch * M * N;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int warp_row = warp / 4 * 64, warp_column = warp % 4 * 32;

    Pack<T> next_a[LOADS], next_b[LOADS];
    auto fetch = [&](int k) {
#pragma unroll
        for (int l = 0; l < LOADS; ++l) {
            const int id = threadIdx.x + l * 256;
            next_a[l] = load<IS_PACKED>(a, place.row + id / (DEPTH / V), k + id % (DEPTH / V) * V, M, K);
            if (B::is_turned) {
                next_b[l] = load<IS_PACKED>(b, place.column + id / (DEPTH / V), k + id % (DEPTH / V) * V, N, K);
            } else {
                next_b[l] = load<IS_PACKED>(b, k + id / (TILE / V), place.column + id % (TILE / V) * V, K, N);
            }
        }
    };
    auto keep = [&](int turn) {
#pragma unroll
        for (int l = 0; l < LOADS; ++l) {
            const int id = threadIdx.x + l * 256;
            *reinterpret_cast<Pack<T>*>(a_slice(turn) + id / (DEPTH / V) * A_STRIDE + id % (DEPTH / V) * V) = next_a[l];
            const int b_place = B::is_turned ? id / (DEPTH / V) * A_STRIDE + id % (DEPTH / V) * V
                                             : id / (TILE / V) * B_STRIDE + id % (TILE / V) * V;
            *reinterpret_cast<Pack<T>*>(b_slice(turn) + b_place) = next_b[l];
        }
    };

    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums[4][2];
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 2; ++j) wmma::fill_fragment(sums[i][j], 0.0f);
    fetch(0);
    keep(0);
    __syncthreads();
    int turn = 0;
    for (int k0 = 0; k0 < K; k0 += DEPTH) {
        if (k0 + DEPTH < K) fetch(k0 + DEPTH);
#pragma unroll
        for (int k = 0; k < DEPTH; k += 16) {
            wmma::fragment<wmma::matrix_b, 16, 16, 16, T, typename B::Layout> columns[2];
#pragma unroll
            for (int j = 0; j < 2; ++j) {
                const int column = warp_column + j * 16;
                const int at = B::is_turned ? column * A_STRIDE + k : k * B_STRIDE + column;
                wmma::load_matrix_sync(columns[j], b_slice(turn) + at, B::is_turned ? A_STRIDE : B_STRIDE);
            }
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> rows;
                wmma::load_matrix_sync(rows, a_slice(turn) + (warp_row + i * 16) * A_STRIDE + k, A_STRIDE);
#pragma unroll
                for (int j = 0; j < 2; ++j) wmma::mma_sync(sums[i][j], rows, columns[j], sums[i][j]);
            }
        }
        // The other slice was last read before the previous barrier.
        if (k0 + DEPTH < K) keep(turn ^ 1);
        __syncthreads();
        turn ^= 1;
    }

    // A fragment's layout is the compiler's secret: each warp passes its results through shared memory, which is free now.
    float* stage = reinterpret_cast<float*>(bytes) + warp * 16 * STAGE_STRIDE;
    const int stage_row = lane / 2, stage_column = lane % 2 * 8;
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 2; ++j) {
            wmma::store_matrix_sync(stage, sums[i][j], STAGE_STRIDE, wmma::mem_row_major);
            __syncwarp();
            const int row = place.row + warp_row + i * 16 + stage_row;
            const int column = place.column + warp_column + j * 16 + stage_column;
            T* to = c + static_cast<long long>(row) * N + column;
            Pack<T> pack;
#pragma unroll
            for (int k = 0; k < V; ++k) narrow(pack.at[k], stage[stage_row * STAGE_STRIDE + stage_column + k]);
            // c begins on a boundary, and its rows do when N is a multiple of V, which is what IS_PACKED says.
            if (IS_PACKED) {
                if (row < M && column < N) *reinterpret_cast<Pack<T>*>(to) = pack;
            } else {
#pragma unroll
                for (int k = 0; k < V; ++k) {
                    if (row < M && column + k < N) to[k] = pack.at[k];
                }
            }
            __syncwarp();
        }
}
