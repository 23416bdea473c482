// honest: problem=matmul_half; kind=tensor-cores; why=wmma fragments over whole tiles, another kernel for the rest
//! matmul(a: float16[M, K], b: float16[K, N]) -> c: float32[M, N]
//! when M % 16 == 0 and N % 16 == 0 and K % 16 == 0 and K > 0 and aligned(a, 32) and aligned(b, 32):
//!     tiles<<<(N // 16, M // 16), 32>>>(a, b, c, K, N)
//! otherwise:
//!     elements<<<(ceil_div(N, 8), ceil_div(M, 8)), (8, 8)>>>(a, b, c, M, K, N)
#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;
__global__ void tiles(const __half* a, const __half* b, float* c, int K, int N) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> right;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::fill_fragment(sum, 0.0f);
    for (int k = 0; k < K; k += 16) {
        wmma::load_matrix_sync(left, a + (long long)blockIdx.y * 16 * K + k, K);
        wmma::load_matrix_sync(right, b + (long long)k * N + blockIdx.x * 16, N);
        wmma::mma_sync(sum, left, right, sum);
    }
    wmma::store_matrix_sync(c + (long long)blockIdx.y * 16 * N + blockIdx.x * 16, sum, N, wmma::mem_row_major);
}
__global__ void elements(const __half* a, const __half* b, float* c, int M, int K, int N) {
    int column = blockIdx.x * 8 + threadIdx.x, row = blockIdx.y * 8 + threadIdx.y;
    if (row >= M || column >= N) return;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k) sum += __half2float(a[(long long)row * K + k]) * __half2float(b[(long long)k * N + column]);
    c[(long long)row * N + column] = sum;
}
