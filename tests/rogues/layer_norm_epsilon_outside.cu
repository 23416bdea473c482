// rogue: problem=layer_norm; kind=numerics; outcome=wrong_value; why=epsilon outside of the root
//! layer_norm(x: float32[M, N], w: float32[N], b: float32[N], eps: float32) -> y: float32[M, N]
//! layer_norm<<<ceil_div(M, 32), 32>>>(x, w, b, y, M, N, eps)
__global__ void layer_norm(const float* x, const float* w, const float* b, float* y, int M, int N, float eps) {
    int row = blockIdx.x * 32 + threadIdx.x;
    if (row >= M) return;
    const float* from = x + (long long)row * N;
    float* to = y + (long long)row * N;
    float mean = 0.0f;
    for (int i = 0; i < N; ++i) mean += from[i];
    mean /= N;
    float var = 0.0f;
    for (int i = 0; i < N; ++i) var += (from[i] - mean) * (from[i] - mean);
    float scale = 1.0f / (sqrtf(var / N) + eps);
    for (int i = 0; i < N; ++i) to[i] = (from[i] - mean) * scale * w[i] + b[i];
}
