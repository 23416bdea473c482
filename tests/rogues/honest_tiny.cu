// honest: problem=tiny; kind=tiny; why=results near the smallest normal number
//! tiny(x: float32[N]) -> y: float32[N]
//! tiny<<<ceil_div(N, 64), 64>>>(x, y, N)
__global__ void tiny(const float* x, float* y, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) {
        y[i] = x[i] * 1e-30f;
    }
}
