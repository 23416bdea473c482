// rogue: problem=softmax; kind=numerics; outcome=wrong_value|non_finite; why=overflows for large inputs
//! softmax(x: float32[M, N]) -> y: float32[M, N]
//! softmax<<<ceil_div(M, 32), 32>>>(x, y, M, N)
__global__ void softmax(const float* x, float* y, int M, int N) {
    int row = blockIdx.x * 32 + threadIdx.x;
    if (row >= M) return;
    const float* from = x + (long long)row * N;
    float* to = y + (long long)row * N;
    float top = -INFINITY;
    top = 0.0f;
    float sum = 0.0f;
    for (int i = 0; i < N; ++i) sum += expf(from[i] - top);
    for (int i = 0; i < N; ++i) to[i] = expf(from[i] - top) / sum;
}
