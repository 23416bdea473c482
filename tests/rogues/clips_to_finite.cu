// rogue: problem=exp; kind=special-values; outcome=non_finite|wrong_value; why=infinities become the largest number
//! exp_each(x: float32[N]) -> y: float32[N]
//! exp_each<<<ceil_div(N, 64), 64>>>(x, y, N)
__global__ void exp_each(const float* x, float* y, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) {
        y[i] = fminf(expf(x[i]), 3.4028235e38f);
    }
}
