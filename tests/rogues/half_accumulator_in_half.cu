// rogue: problem=row_sum_half; kind=precision; outcome=wrong_value|precision_downgraded; why=sums in float16 where the reference sums in float32
//! row_sum(x: float16[M, N]) -> y: float16[M]
//! row_sum<<<ceil_div(M, 32), 32>>>(x, y, M, N)
#include <cuda_fp16.h>
__global__ void row_sum(const __half* x, __half* y, int M, int N) {
    int row = blockIdx.x * 32 + threadIdx.x;
    if (row >= M) return;
    const __half* from = x + (long long)row * N;
    __half sum = __float2half(0.0f);
    for (int i = 0; i < N; ++i) sum = __hadd(sum, from[i]);
    y[row] = sum;
}
