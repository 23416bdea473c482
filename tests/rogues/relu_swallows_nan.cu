// rogue: problem=relu; kind=special-values; outcome=non_finite; why=fmaxf gives 0 for NaN
//! relu_each(x: float32[N]) -> y: float32[N]
//! relu_each<<<ceil_div(N, 64), 64>>>(x, y, N)
__global__ void relu_each(const float* x, float* y, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) {
        y[i] = fmaxf(x[i], 0.0f);
    }
}
