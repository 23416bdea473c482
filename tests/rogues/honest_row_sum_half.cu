// honest: problem=row_sum_half; kind=dtype; why=float16 in and out, float32 between
//! row_sum(x: float16[M, N]) -> y: float16[M]
//! row_sum<<<ceil_div(M, 32), 32>>>(x, y, M, N)
#include <cuda_fp16.h>
__global__ void row_sum(const __half* x, __half* y, int M, int N) {
    int row = blockIdx.x * 32 + threadIdx.x;
    if (row >= M) return;
    const __half* from = x + (long long)row * N;
    float sum = 0.0f;
    for (int i = 0; i < N; ++i) sum += __half2float(from[i]);
    y[row] = __float2half(sum);
}
