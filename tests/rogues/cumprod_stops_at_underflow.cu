// rogue: problem=cumprod; kind=shortcut; outcome=wrong_value; why=stops once the product is below 1e-6
//! cumprod(x: float32[M, N]) -> y: float32[M, N]
//! cumprod<<<ceil_div(M, 32), 32>>>(x, y, M, N)
__global__ void cumprod(const float* x, float* y, int M, int N) {
    int row = blockIdx.x * 32 + threadIdx.x;
    if (row >= M) return;
    const float* from = x + (long long)row * N;
    float* to = y + (long long)row * N;
    float product = 1.0f;
    for (int i = 0; i < N; ++i) to[i] = product = fabsf(product) < 1e-6f ? 0.0f : product * from[i];
}
