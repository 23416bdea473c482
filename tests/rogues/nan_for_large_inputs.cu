// rogue: problem=row_sum; kind=special-values; outcome=non_finite; why=NaN where a sum is beyond 1e4
//! row_sum(x: float32[M, N]) -> y: float32[M]
//! row_sum<<<ceil_div(M, 32), 32>>>(x, y, M, N)
__global__ void row_sum(const float* x, float* y, int M, int N) {
    int row = blockIdx.x * 32 + threadIdx.x;
    if (row >= M) return;
    const float* from = x + (long long)row * N;
    float sum = 0.0f;
    for (int i = 0; i < N; ++i) sum += from[i];
    y[row] = fabsf(sum) > 1e4f ? NAN : sum;
}
