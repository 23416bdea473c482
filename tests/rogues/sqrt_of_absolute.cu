// rogue: problem=sqrt; kind=special-values; outcome=non_finite; why=no NaN for negative numbers
//! sqrt_each(x: float32[N]) -> y: float32[N]
//! sqrt_each<<<ceil_div(N, 64), 64>>>(x, y, N)
__global__ void sqrt_each(const float* x, float* y, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) {
        y[i] = sqrtf(fabsf(x[i]));
    }
}
