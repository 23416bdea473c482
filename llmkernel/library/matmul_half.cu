// LLM-CUDA's own kernel: the matrix product of 16-bit floats on tensor cores, accumulated in float32.
//! matmul_half(a: T[B, M, K], b: T[B, K, N]) -> c: T[B, M, N]    where T in {float16, bfloat16}
//! let down = ceil_div(M, 128)
//! let across = ceil_div(N, 256)
//! let narrow_across = ceil_div(N, 128)
//! let is_packed = aligned(a, 16) and aligned(b, 16) and K % 8 == 0 and N % 8 == 0
//! when is_packed and across * down * B >= num_sms:
//!     matmul_tiles<T, 4, true, Plain><<<across * down * B, 256, 92160>>>(a, b, c, M, N, K, across, down)
//! when is_packed:
//!     matmul_tiles<T, 2, true, Plain><<<narrow_across * down * B, 128, 61440>>>(a, b, c, M, N, K, narrow_across, down)
//! otherwise:
//!     matmul_tiles<T, 2, false, Plain><<<narrow_across * down * B, 128, 61440>>>(a, b, c, M, N, K, narrow_across, down)
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <mma.h>

// A warp computes 64 × 64 of c, which asks tensor cores for more work than shared memory for operands; a block has two rows
// of WARPS_ACROSS warps. Slices of 32 columns of a and rows of b come in by asynchronous copies, two slices ahead of their
// use. Rows in shared memory are 16 bytes longer than the slice, so that the fragments' loads fall into different banks.
using namespace nvcuda;

constexpr int DOWN = 128, DEPTH = 32, STAGES = 3, DEEP_STRIDE = DEPTH + 8, STAGING_STRIDE = 20;

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

    __device__ __forceinline__ Place(int across, int down, int width) {
        constexpr unsigned GROUP = 8;
        const unsigned in_batch = static_cast<unsigned>(across) * down, block = blockIdx.x % in_batch;
        batch = blockIdx.x / in_batch;
        const unsigned first = block / (GROUP * across) * GROUP, rows = min(GROUP, down - first);
        row = (first + block % (GROUP * across) % rows) * DOWN;
        column = block % (GROUP * across) / rows * width;
    }
};

// Copies a (ROWS, COLUMNS) part of a (rows, columns) matrix into shared memory; zeros outside the matrix.
template <bool IS_PACKED, int THREADS, int ROWS, int COLUMNS, int STRIDE, typename T>
__device__ __forceinline__ void copy_part(T* to, const T* matrix, int row, int column, int rows, int columns) {
    constexpr int V = Pack<T>::size, PACKS = COLUMNS / V;
#pragma unroll
    for (int id = threadIdx.x; id < ROWS * PACKS; id += THREADS) {
        const int i = row + id / PACKS, j = column + id % PACKS * V;
        T* pack = to + id / PACKS * STRIDE + id % PACKS * V;
        const T* from = matrix + static_cast<long long>(i) * columns + j;
        if (IS_PACKED) {
            const bool is_inside = i < rows && j < columns;
            // Nothing is read where all 16 bytes are zeros, but the address must be one of the matrix.
            __pipeline_memcpy_async(pack, is_inside ? from : matrix, 16, is_inside ? 0 : 16);
        } else {
#pragma unroll
            for (int k = 0; k < V; ++k) {
                narrow(pack[k], 0.0f);
                if (i < rows && j + k < columns) pack[k] = from[k];
            }
        }
    }
}

template <typename T, int WARPS_ACROSS, bool IS_PACKED, typename B>
__global__ void __launch_bounds__(64 * WARPS_ACROSS)
    matmul_tiles(const T* __restrict__ a, const T* __restrict__ b, T* __restrict__ c, int M, int N, int K, int across,
                 int down) {
    constexpr int V = Pack<T>::size, THREADS = 64 * WARPS_ACROSS, WIDTH = 64 * WARPS_ACROSS;
    constexpr int B_STRIDE = B::is_turned ? DEEP_STRIDE : WIDTH + 8;
    constexpr int A_SIZE = DOWN * DEEP_STRIDE, B_SIZE = B::is_turned ? WIDTH * DEEP_STRIDE : DEPTH * B_STRIDE;
    extern __shared__ __align__(128) unsigned char bytes[];
    T* slices = reinterpret_cast<T*>(bytes);
    const Place place(across, down, WIDTH);
    a += place.batch * M * K;
    b += place.batch * K * N;
    c += place.batch * M * N;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int warp_row = warp / WARPS_ACROSS * 64, warp_column = warp % WARPS_ACROSS * 64;

    auto fetch = [&](int step) {
        T* to = slices + step % STAGES * (A_SIZE + B_SIZE);
        const int k = step * DEPTH;
        copy_part<IS_PACKED, THREADS, DOWN, DEPTH, DEEP_STRIDE>(to, a, place.row, k, M, K);
        if (B::is_turned) {
            copy_part<IS_PACKED, THREADS, WIDTH, DEPTH, DEEP_STRIDE>(to + A_SIZE, b, place.column, k, N, K);
        } else {
            copy_part<IS_PACKED, THREADS, DEPTH, WIDTH, WIDTH + 8>(to + A_SIZE, b, k, place.column, K, N);
        }
    };

    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums[4][4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) wmma::fill_fragment(sums[i][j], 0.0f);

    const int steps = (K + DEPTH - 1) / DEPTH;
    for (int step = 0; step < STAGES - 1; ++step) {
        if (step < steps) fetch(step);
        __pipeline_commit();
    }
    for (int step = 0; step < steps; ++step) {
        __pipeline_wait_prior(STAGES - 2);
        // This slice is there for all, and all have done with the one that is overwritten next.
        __syncthreads();
        if (step + STAGES - 1 < steps) fetch(step + STAGES - 1);
        // An empty group too, so that the count of groups under way stays the same.
        __pipeline_commit();
        const T* a_slice = slices + step % STAGES * (A_SIZE + B_SIZE);
        const T* b_slice = a_slice + A_SIZE;
#pragma unroll
        for (int k = 0; k < DEPTH; k += 16) {
            wmma::fragment<wmma::matrix_b, 16, 16, 16, T, typename B::Layout> columns[4];
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const int column = warp_column + j * 16;
                const int at = B::is_turned ? column * B_STRIDE + k : k * B_STRIDE + column;
                wmma::load_matrix_sync(columns[j], b_slice + at, B_STRIDE);
            }
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> rows;
                wmma::load_matrix_sync(rows, a_slice + (warp_row + i * 16) * DEEP_STRIDE + k, DEEP_STRIDE);
#pragma unroll
                for (int j = 0; j < 4; ++j) wmma::mma_sync(sums[i][j], rows, columns[j], sums[i][j]);
            }
        }
    }

    // A fragment's layout is the compiler's secret: each warp passes its results through shared memory, which is free
    // once all warps are here.
    __pipeline_wait_prior(0);
    __syncthreads();
    float* staging = reinterpret_cast<float*>(bytes) + warp * 16 * STAGING_STRIDE;
    const int staging_row = lane / 2, staging_column = lane % 2 * 8;
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            wmma::store_matrix_sync(staging, sums[i][j], STAGING_STRIDE, wmma::mem_row_major);
            __syncwarp();
            const int row = place.row + warp_row + i * 16 + staging_row;
            const int column = place.column + warp_column + j * 16 + staging_column;
            T* to = c + static_cast<long long>(row) * N + column;
            Pack<T> pack;
#pragma unroll
            for (int k = 0; k < V; ++k) narrow(pack.at[k], staging[staging_row * STAGING_STRIDE + staging_column + k]);
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
