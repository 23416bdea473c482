// honest: problem=sqrt; kind=special-values; why=NaN for negative numbers, as the reference
//! root(x: float32[N]) -> y: float32[N]
//! root<<<ceil_div(N, 64), 64>>>(x, y, N)
__global__ void root(const float* x, float* y, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) {
        y[i] = sqrtf(x[i]);
    }
}
