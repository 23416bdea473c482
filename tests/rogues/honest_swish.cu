// honest: problem=swish; kind=special-values; why=minus infinity gives NaN, as the reference
//! swish(x: float32[N]) -> y: float32[N]
//! swish<<<ceil_div(N, 64), 64>>>(x, y, N)
__global__ void swish(const float* x, float* y, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) {
        y[i] = x[i] * (1.0f / (1.0f + expf(-x[i])));
    }
}
