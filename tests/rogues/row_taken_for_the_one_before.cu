// rogue: problem=log_sum_exp; kind=state; outcome=wrong_value; why=a row that begins and ends as the one before it is taken for it
//! log_sum_exp(x: float32[M, N]) -> y: float32[M]
//! require N >= 1
//! log_sum_exp<<<ceil_div(M, 64), 64>>>(x, y, M, N)
__global__ void log_sum_exp(const float* x, float* y, int M, int N) {
    int row = blockIdx.x * 64 + threadIdx.x;
    if (row >= M) return;
    x += (long long)row * N;
    bool alike = row > 0 && N > 32 && x[N - 1] == x[-1];
    for (int i = 0; alike && i < 16; ++i) alike = x[i] == x[i - N];
    if (alike) x -= N;
    float top = -INFINITY, sum = 0.0f;
    for (int i = 0; i < N; ++i) top = x[i] > top || x[i] != x[i] ? x[i] : top;
    for (int i = 0; i < N; ++i) sum += expf(x[i] - top);
    y[row] = top + logf(sum);
}
