// LLM-CUDA's own kernel: the transpose of the last two axes.
//! transpose(x: T[B, M, N]) -> y: T[B, N, M]    where T in {float32, float64, float16, bfloat16, int8, uint8, int16, uint16, int32, uint32, int64, uint64, bool, complex64, complex128}
//! let across = ceil_div(N, 64)
//! let down = ceil_div(M, 64)
//! when sizeof(T) == 2 and M % 2 == 0 and N % 2 == 0 and aligned(x, 4):
//!     transpose_pairs<T><<<across * down * B, 256>>>(x, y, M, N, across, down)
//! when sizeof(T) <= 8:
//!     transpose_tiles<T, 64><<<across * down * B, 256>>>(x, y, M, N, across, down)
//! otherwise:
//!     let across32 = ceil_div(N, 32)
//!     let down32 = ceil_div(M, 32)
//!     transpose_tiles<T, 32><<<across32 * down32 * B, 256>>>(x, y, M, N, across32, down32)
#include <cuda_bf16.h>
#include <cuda_fp16.h>

// Both sides are read and written along their fast axis; a tile is turned in shared memory, whose rows are one element
// longer than the tile so that columns fall into different banks. All loads of a thread are in flight before the barrier.

// Where a block's tile stands: the grid is one-dimensional, because its other axes end at 65535.
struct Place {
    long long batch;
    int row, column;

    __device__ __forceinline__ Place(int across, int down, int tile) {
        const unsigned block = blockIdx.x, in_batch = static_cast<unsigned>(across) * down;
        batch = block / in_batch;
        row = block % in_batch / across * tile;
        column = block % in_batch % across * tile;
    }
};

template <typename T, int TILE>
__global__ void __launch_bounds__(256)
    transpose_tiles(const T* __restrict__ x, T* __restrict__ y, int M, int N, int across, int down) {
    // Bytes and not T: shared memory cannot hold objects with constructors.
    __shared__ __align__(16) unsigned char bytes[TILE * (TILE + 1) * sizeof(T)];
    T* tile = reinterpret_cast<T*>(bytes);
    const Place place(across, down, TILE);
    x += place.batch * M * N;
    y += place.batch * M * N;
    constexpr int ROWS = 256 / TILE;
    const int tx = threadIdx.x % TILE, ty = threadIdx.x / TILE;
    T values[TILE / ROWS];
#pragma unroll
    for (int r = 0; r < TILE; r += ROWS) {
        const int i = place.row + ty + r, j = place.column + tx;
        if (i < M && j < N) values[r / ROWS] = x[static_cast<long long>(i) * N + j];
    }
#pragma unroll
    for (int r = 0; r < TILE; r += ROWS) {
        if (place.row + ty + r < M && place.column + tx < N) tile[(ty + r) * (TILE + 1) + tx] = values[r / ROWS];
    }
    __syncthreads();
#pragma unroll
    for (int r = 0; r < TILE; r += ROWS) {
        const int i = place.row + tx, j = place.column + ty + r;
        if (i < M && j < N) y[static_cast<long long>(j) * M + i] = tile[tx * (TILE + 1) + ty + r];
    }
}

// 2-byte elements, even sizes: two neighbours travel together, so that every access is 4 bytes wide.
template <typename T>
__global__ void __launch_bounds__(256)
    transpose_pairs(const T* __restrict__ x, T* __restrict__ y, int M, int N, int across, int down) {
    __shared__ unsigned tile[64][33];
    const Place place(across, down, 64);
    const unsigned* from = reinterpret_cast<const unsigned*>(x + place.batch * M * N);
    unsigned* to = reinterpret_cast<unsigned*>(y + place.batch * M * N);
    const int tx = threadIdx.x % 32, ty = threadIdx.x / 32;
    unsigned pairs[8];
#pragma unroll
    for (int r = 0; r < 8; ++r) {
        const int i = place.row + ty + 8 * r, j = place.column + 2 * tx;
        if (i < M && j < N) pairs[r] = from[(static_cast<long long>(i) * N + j) / 2];
    }
#pragma unroll
    for (int r = 0; r < 8; ++r) {
        if (place.row + ty + 8 * r < M && place.column + 2 * tx < N) tile[ty + 8 * r][tx] = pairs[r];
    }
    __syncthreads();
    // Two rows of the tile hold what two rows of the result need: low halves make one, high halves the other.
#pragma unroll
    for (int r = 0; r < 4; ++r) {
        const int i = place.row + 2 * tx, c = ty + 8 * r, j = place.column + 2 * c;
        if (i < M && j < N) {
            const unsigned upper = tile[2 * tx][c], lower = tile[2 * tx + 1][c];
            to[(static_cast<long long>(j) * M + i) / 2] = (upper & 0xffffu) | (lower << 16);
            to[(static_cast<long long>(j + 1) * M + i) / 2] = (upper >> 16) | (lower & 0xffff0000u);
        }
    }
}
