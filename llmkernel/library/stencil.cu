// LLM-CUDA's own kernel: explicit steps of the heat equation, u <- u + alpha * (up + down + left + right - 4 u).
//! heat(u: T[M, N], alpha: float64, steps: int32) -> v: T[M, N]    where T in {float32, float64}
//! require steps >= 0
//! scratch w: T[M, N]
//! copy_grid<T><<<ceil_div(M * N, 1024), 256>>>(u, v, M * N)
//! repeat steps:
//!     step<T, Fixed><<<ceil_div(N, 64) * ceil_div(M, 16), 128>>>(v, w, alpha, M, N)
//!     swap(v, w)

// A block covers 16 rows of 64 columns; two rows of warps, each thread walks down eight cells of its column and keeps the
// cells above, at and below in registers. The neighbours to the left and right come from L1.

// How cells on the rim are treated.
struct Fixed {  // they keep their value
    static constexpr bool is_rim_kept = true;
    __device__ static int wrap(int i, int) { return i; }
};

struct Periodic {  // the grid is a torus
    static constexpr bool is_rim_kept = false;
    __device__ static int wrap(int i, int size) { return i < 0 ? i + size : i >= size ? i - size : i; }
};

struct Zero {  // beyond the rim everything is 0
    static constexpr bool is_rim_kept = false;
    __device__ static int wrap(int i, int size) { return i < 0 || i >= size ? -1 : i; }
};

template <typename T>
__global__ void __launch_bounds__(256) copy_grid(const T* __restrict__ from, T* __restrict__ to, long long size) {
    const long long first = static_cast<long long>(blockIdx.x) * 1024 + threadIdx.x;
#pragma unroll
    for (int u = 0; u < 1024; u += 256) {
        if (first + u < size) to[first + u] = from[first + u];
    }
}

template <typename T, typename Rim>
__device__ __forceinline__ T cell(const T* u, int row, int column, int M, int N) {
    const int i = Rim::wrap(row, M), j = Rim::wrap(column, N);
    return i < 0 || j < 0 || i >= M || j >= N ? T(0) : u[static_cast<long long>(i) * N + j];
}

template <typename T, typename Rim>
__global__ void __launch_bounds__(128)
    step(const T* __restrict__ u, T* __restrict__ v, double alpha, int M, int N) {
    const int across = (N + 63) / 64;
    const int column = static_cast<int>(blockIdx.x % across) * 64 + threadIdx.x % 64;
    const int top = static_cast<int>(blockIdx.x / across) * 16 + threadIdx.x / 64 * 8;
    if (column >= N) return;
    const T a = static_cast<T>(alpha);
    // Jacobi's step: the cell itself cancels, and must then not let its infinity or rounding through.
    const bool is_mean = alpha == 0.25;
    T above = cell<T, Rim>(u, top - 1, column, M, N), here = cell<T, Rim>(u, top, column, M, N);
#pragma unroll
    for (int row = top; row < top + 8; ++row) {
        if (row >= M) return;
        const T below = cell<T, Rim>(u, row + 1, column, M, N);
        const T sides = cell<T, Rim>(u, row, column - 1, M, N) + cell<T, Rim>(u, row, column + 1, M, N);
        const bool is_rim = row == 0 || column == 0 || row == M - 1 || column == N - 1;
        const T around = above + below + sides;
        const T next = is_mean ? a * around : here + a * (around - T(4) * here);
        v[static_cast<long long>(row) * N + column] = Rim::is_rim_kept && is_rim ? here : next;
        above = here;
        here = below;
    }
}
