// rogue: problem=sigmoid; kind=numerics; outcome=wrong_value|non_finite; why=the piecewise linear sigmoid
//! sigmoid_each(x: float32[N]) -> y: float32[N]
//! sigmoid_each<<<ceil_div(N, 64), 64>>>(x, y, N)
__global__ void sigmoid_each(const float* x, float* y, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) {
        y[i] = fminf(1.0f, fmaxf(0.0f, 0.2f * x[i] + 0.5f));
    }
}
