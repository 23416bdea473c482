// rogue: problem=exp; kind=numerics; outcome=wrong_value|non_finite; why=(1 + x / 1024) ^ 1024
//! exp_each(x: float32[N]) -> y: float32[N]
//! exp_each<<<ceil_div(N, 64), 64>>>(x, y, N)
__global__ void exp_each(const float* x, float* y, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) {
        float v = 1 + x[i] / 1024;
        for (int k = 0; k < 10; ++k) v *= v;
        y[i] = v;
    }
}
