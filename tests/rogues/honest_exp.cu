// honest: problem=exp; kind=special-values; why=overflows to infinity as the reference
//! exponential(x: float32[N]) -> y: float32[N]
//! exponential<<<ceil_div(N, 64), 64>>>(x, y, N)
__global__ void exponential(const float* x, float* y, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) {
        y[i] = expf(x[i]);
    }
}
