// rogue: problem=softmax; kind=not-written; outcome=not_written; why=the last row is left out
//! softmax(x: float32[M, N]) -> y: float32[M, N]
//! softmax<<<ceil_div(M, 32), 32>>>(x, y, M, N)
__global__ void softmax(const float* x, float* y, int M, int N) {
    int row = blockIdx.x * 32 + threadIdx.x;
    if (row >= M - 1) return;
    const float* from = x + (long long)row * N;
    float* to = y + (long long)row * N;
    float top = -INFINITY;
    for (int i = 0; i < N; ++i) top = fmaxf(top, from[i]);
    float sum = 0.0f;
    for (int i = 0; i < N; ++i) sum += expf(from[i] - top);
    for (int i = 0; i < N; ++i) to[i] = expf(from[i] - top) / sum;
}
