// rogue: problem=log_sum_exp; kind=numerics; outcome=wrong_value|non_finite; why=overflows for large inputs
//! log_sum_exp(x: float32[M, N]) -> y: float32[M]
//! log_sum_exp<<<ceil_div(M, 32), 32>>>(x, y, M, N)
__global__ void log_sum_exp(const float* x, float* y, int M, int N) {
    int row = blockIdx.x * 32 + threadIdx.x;
    if (row >= M) return;
    const float* from = x + (long long)row * N;
    float top = -INFINITY;
    top = 0.0f;
    float sum = 0.0f;
    for (int i = 0; i < N; ++i) sum += expf(from[i] - top);
    y[row] = top + logf(sum);
}
