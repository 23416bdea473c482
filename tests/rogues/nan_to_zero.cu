// rogue: problem=abs; kind=special-values; outcome=non_finite; why=NaN becomes 0
//! abs_each(x: float32[N]) -> y: float32[N]
//! abs_each<<<ceil_div(N, 64), 64>>>(x, y, N)
__global__ void abs_each(const float* x, float* y, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) {
        y[i] = x[i] == x[i] ? fabsf(x[i]) : 0.0f;
    }
}
