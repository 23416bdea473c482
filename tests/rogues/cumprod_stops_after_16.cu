// rogue: problem=cumprod; kind=shortcut; outcome=wrong_value; why=zero after 16 factors
//! cumprod(x: float32[M, N]) -> y: float32[M, N]
//! cumprod<<<ceil_div(M, 32), 32>>>(x, y, M, N)
__global__ void cumprod(const float* x, float* y, int M, int N) {
    int row = blockIdx.x * 32 + threadIdx.x;
    if (row >= M) return;
    const float* from = x + (long long)row * N;
    float* to = y + (long long)row * N;
    float product = 1.0f;
    for (int i = 0; i < N; ++i) to[i] = product *= i < 16 ? from[i] : 0.0f;
}
