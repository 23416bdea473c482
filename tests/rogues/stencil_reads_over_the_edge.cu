// rogue: problem=stencil; kind=bounds; outcome=out_of_bounds|wrong_value|non_finite; why=reads x[-1] at the first element
//! stencil(x: float32[N]) -> y: float32[N]
//! stencil<<<ceil_div(N, 64), 64>>>(x, y, N)
__global__ void stencil(const float* x, float* y, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i >= N) return;
    y[i] = 0.25f * x[i - 1] + 0.5f * x[i] + 0.25f * x[i + 1];
}
