// rogue: problem=row_sum; kind=precision; outcome=precision_downgraded; why=a half-precision accumulator
//! row_sum(x: float32[M, N]) -> y: float32[M]
//! row_sum<<<ceil_div(M, 32), 32>>>(x, y, M, N)
#include <cuda_fp16.h>
__global__ void row_sum(const float* x, float* y, int M, int N) {
    int row = blockIdx.x * 32 + threadIdx.x;
    if (row >= M) return;
    const float* from = x + (long long)row * N;
    __half sum = __float2half(0.0f);
    for (int i = 0; i < N; ++i) sum = __float2half(__half2float(sum) + from[i]);
    y[row] = __half2float(sum);
}
