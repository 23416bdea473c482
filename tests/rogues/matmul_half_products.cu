// rogue: problem=matmul; kind=precision; outcome=precision_downgraded; why=products in half precision
//! matmul(a: float32[M, K], b: float32[K, N]) -> c: float32[M, N]
//! matmul<<<(ceil_div(N, 8), ceil_div(M, 8)), (8, 8)>>>(a, b, c, M, K, N)
#include <cuda_fp16.h>
__global__ void matmul(const float* a, const float* b, float* c, int M, int K, int N) {
    int column = blockIdx.x * 8 + threadIdx.x, row = blockIdx.y * 8 + threadIdx.y;
    if (row >= M || column >= N) return;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k) sum += __half2float(__float2half(a[(long long)row * K + k])) * __half2float(__float2half(b[(long long)k * N + column]));
    c[(long long)row * N + column] = sum;
}
