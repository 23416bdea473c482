// honest: problem=softmax; kind=rows; why=maximum and sum in one pass
//! softmax(x: float32[M, N]) -> y: float32[M, N]
//! softmax<<<ceil_div(M, 32), 32>>>(x, y, M, N)
__global__ void softmax(const float* x, float* y, int M, int N) {
    int row = blockIdx.x * 32 + threadIdx.x;
    if (row >= M) return;
    const float* from = x + (long long)row * N;
    float* to = y + (long long)row * N;
    float top = -INFINITY;
    float sum = 0.0f;
    bool is_infinite = false;
    for (int i = 0; i < N; ++i) {
        float now = fmaxf(top, from[i]);
        is_infinite |= isinf(from[i]) && from[i] > 0;
        sum = (now == -INFINITY ? 0.0f : sum * expf(top - now) + expf(from[i] - now));
        if (from[i] != from[i]) sum = from[i], now = from[i];
        if (sum != sum) now = sum;
        top = now;
        if (sum != sum) break;
    }
    if (is_infinite || top == -INFINITY) sum = NAN;
    for (int i = 0; i < N; ++i) to[i] = expf(from[i] - top) / sum;
}
