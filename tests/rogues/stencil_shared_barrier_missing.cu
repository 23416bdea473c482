// rogue: problem=stencil; kind=synchronization; outcome=data_race|non_deterministic|wrong_value; cpu=data_race|wrong_value|non_deterministic; needs=racecheck; why=the halo is read before it is there
//! stencil(x: float32[N]) -> y: float32[N]
//! stencil<<<ceil_div(N, 64), 64>>>(x, y, N)
__global__ void stencil(const float* x, float* y, int N) {
    __shared__ float tile[66];
    int i = blockIdx.x * 64 + threadIdx.x, t = threadIdx.x + 1;
    if (i < N) tile[t] = x[i];
    if (threadIdx.x == 0 && i > 0) tile[0] = x[i - 1];
    if (threadIdx.x == 63 && i + 1 < N) tile[65] = x[i + 1];
    if (i < N) y[i] = i == 0 || i == N - 1 ? tile[t] : 0.25f * tile[t - 1] + 0.5f * tile[t] + 0.25f * tile[t + 1];
}
