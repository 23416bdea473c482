// rogue: problem=exp; kind=numerics; outcome=wrong_value|non_finite; why=five terms of a series
//! exp_each(x: float32[N]) -> y: float32[N]
//! exp_each<<<ceil_div(N, 64), 64>>>(x, y, N)
__global__ void exp_each(const float* x, float* y, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) {
        float v = x[i];
        y[i] = 1 + v * (1 + v * (0.5f + v * (1.0f / 6 + v / 24)));
    }
}
