// rogue: problem=row_sum_bfloat16; kind=precision; outcome=wrong_value|precision_downgraded; why=adds parts of 256 elements up in bfloat16, which shows in long rows
//! row_sum(x: bfloat16[M, N]) -> y: bfloat16[M]
//! row_sum<<<ceil_div(M, 32), 32>>>(x, y, M, N)
#include <cuda_bf16.h>
__global__ void row_sum(const __nv_bfloat16* x, __nv_bfloat16* y, int M, int N) {
    int row = blockIdx.x * 32 + threadIdx.x;
    if (row >= M) return;
    float total = 0.0f;
    for (int begin = 0; begin < N; begin += 256) {
        float part = 0.0f;
        for (int i = begin; i < N && i < begin + 256; ++i) part += __bfloat162float(x[(long long)row * N + i]);
        total = __bfloat162float(__float2bfloat16(total + part));
    }
    y[row] = __float2bfloat16(total);
}
