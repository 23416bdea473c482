// rogue: problem=cumsum; kind=bounds; outcome=out_of_bounds; cuda=out_of_bounds|wrong_value|non_deterministic; cpu=out_of_bounds|data_race; why=rows one element too long
//! cumsum(x: float32[M, N]) -> y: float32[M, N]
//! cumsum<<<ceil_div(M, 32), 32>>>(x, y, M, N)
__global__ void cumsum(const float* x, float* y, int M, int N) {
    int row = blockIdx.x * 32 + threadIdx.x;
    if (row >= M) return;
    const float* from = x + (long long)row * N;
    float* to = y + (long long)row * N;
    float sum = 0.0f;
    for (int i = 0; i <= N; ++i) to[i] = sum += from[i];
}
