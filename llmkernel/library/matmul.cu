// LLM-CUDA's own kernel: the matrix product in float32 and float64, without tensor cores (TF32 would round the inputs).
//! matmul(a: T[B, M, K], b: T[B, K, N]) -> c: T[B, M, N]    where T in {float32, float64}
//! let V = 16 // sizeof(T)
//! let across = ceil_div(N, 128)
//! let down = ceil_div(M, 128)
//! let small_across = ceil_div(N, 64)
//! let small_down = ceil_div(M, 64)
//! let is_packed = aligned(a, 16) and aligned(b, 16) and K % V == 0 and N % V == 0
//! when sizeof(T) == 4 and across * down * B >= num_sms and is_packed:
//!     matmul_tiles<T, 128, 8, true, Plain><<<across * down * B, 256>>>(a, b, c, M, N, K, across, down)
//! when sizeof(T) == 4 and across * down * B >= num_sms:
//!     matmul_tiles<T, 128, 8, false, Plain><<<across * down * B, 256>>>(a, b, c, M, N, K, across, down)
//! when is_packed:
//!     matmul_tiles<T, 64, 4, true, Plain><<<small_across * small_down * B, 256>>>(a, b, c, M, N, K, small_across, small_down)
//! otherwise:
//!     matmul_tiles<T, 64, 4, false, Plain><<<small_across * small_down * B, 256>>>(a, b, c, M, N, K, small_across, small_down)

// A block computes a TILE × TILE part of c with 16 × 16 threads of SIDE × SIDE results each. Both operands pass through
// shared memory in slices of DEPTH (64 bytes) columns of a and rows of b; while one slice is used, the next is on its way in registers.

template <typename T>
struct alignas(16) Pack {
    static constexpr int size = 16 / sizeof(T);
    T at[size];
};

template <typename T>
struct alignas(16) Four {
    T at[4];
};

// How b is laid out: as (K, N), or turned as (N, K), the weights of a linear layer.
struct Plain {
    static constexpr bool is_turned = false;
};
struct Turned {
    static constexpr bool is_turned = true;
};

// Which tile a block computes. Blocks walk down eight tiles before they step to the right: what they read is then still in L2.
struct Place {
    long long batch;
    int row, column;

    __device__ __forceinline__ Place(int across, int down, int tile) {
        constexpr unsigned GROUP = 8;
        const unsigned in_batch = static_cast<unsigned>(across) * down, block = blockIdx.x % in_batch;
        batch = blockIdx.x / in_batch;
        const unsigned first = block / (GROUP * across) * GROUP, rows = min(GROUP, down - first);
        row = (first + block % (GROUP * across) % rows) * tile;
        column = block % (GROUP * across) / rows * tile;
    }
};

// One pack of a (rows, columns) matrix, zeros outside it.
template <bool IS_PACKED, typename T>
__device__ __forceinline__ Pack<T> load(const T* matrix, int row, int column, int rows, int columns) {
    Pack<T> pack;
    const T* from = matrix + static_cast<long long>(row) * columns + column;
    if (IS_PACKED && row < rows && column < columns) return *reinterpret_cast<const Pack<T>*>(from);
#pragma unroll
    for (int k = 0; k < Pack<T>::size; ++k) pack.at[k] = !IS_PACKED && row < rows && column + k < columns ? from[k] : T(0);
    return pack;
}

template <typename T, int TILE, int SIDE, bool IS_PACKED, typename B>
__global__ void __launch_bounds__(256, 2)
    matmul_tiles(const T* __restrict__ a, const T* __restrict__ b, T* __restrict__ c, int M, int N, int K, int across,
                 int down) {
    constexpr int DEPTH = 64 / sizeof(T), V = Pack<T>::size, LOADS = TILE * DEPTH / V / 256, GROUPS = SIDE / 4;
    // Slices are stored with k as their slow axis: a thread's rows and columns are then neighbours. The padding spreads
    // the stores of what was turned over banks.
    __shared__ __align__(16) T as[2][DEPTH][TILE + 4];
    __shared__ __align__(16) T bs[2][DEPTH][TILE + 4];
    const Place place(across, down, TILE);
    a += place.batch * M * K;
    b += place.batch * K * N;
    c += place.batch * M * N;
    const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;

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
#pragma unroll
            for (int k = 0; k < V; ++k) {
                const int depth = id % (DEPTH / V) * V + k, place_in_tile = id / (DEPTH / V);
                as[turn][depth][place_in_tile] = next_a[l].at[k];
                if (B::is_turned) bs[turn][depth][place_in_tile] = next_b[l].at[k];
            }
            if (!B::is_turned) {
                *reinterpret_cast<Pack<T>*>(&bs[turn][id / (TILE / V)][id % (TILE / V) * V]) = next_b[l];
            }
        }
    };

    T sums[SIDE][SIDE] = {};
    fetch(0);
    keep(0);
    __syncthreads();
    int turn = 0;
    for (int k0 = 0; k0 < K; k0 += DEPTH) {
        if (k0 + DEPTH < K) fetch(k0 + DEPTH);
#pragma unroll
        for (int k = 0; k < DEPTH; ++k) {
            Four<T> rows[GROUPS], columns[GROUPS];
#pragma unroll
            for (int g = 0; g < GROUPS; ++g) {
                rows[g] = *reinterpret_cast<const Four<T>*>(&as[turn][k][g * TILE / GROUPS + ty * 4]);
                columns[g] = *reinterpret_cast<const Four<T>*>(&bs[turn][k][g * TILE / GROUPS + tx * 4]);
            }
#pragma unroll
            for (int i = 0; i < SIDE; ++i)
#pragma unroll
                for (int j = 0; j < SIDE; ++j) {
                    // Said and not left to the compiler: a product that overflows on its own makes inf - inf, which is NaN.
                    sums[i][j] = fma(rows[i / 4].at[i % 4], columns[j / 4].at[j % 4], sums[i][j]);
                }
        }
        // The other slice was last read before the previous barrier.
        if (k0 + DEPTH < K) keep(turn ^ 1);
        __syncthreads();
        turn ^= 1;
    }
#pragma unroll
    for (int i = 0; i < SIDE; ++i) {
        const int row = place.row + i / 4 * TILE / GROUPS + ty * 4 + i % 4;
#pragma unroll
        for (int j = 0; j < SIDE; j += V) {
            const int column = place.column + j / 4 * TILE / GROUPS + tx * 4 + j % 4;
            T* to = c + static_cast<long long>(row) * N + column;
            // c begins on a boundary, and its rows do when N is a multiple of V, which is what IS_PACKED says.
            if (IS_PACKED) {
                Pack<T> pack;
#pragma unroll
                for (int k = 0; k < V; ++k) pack.at[k] = sums[i][j + k];
                if (row < M && column < N) *reinterpret_cast<Pack<T>*>(to) = pack;
            } else {
#pragma unroll
                for (int k = 0; k < V; ++k) {
                    if (row < M && column + k < N) to[k] = sums[i][j + k];
                }
            }
        }
    }
}
