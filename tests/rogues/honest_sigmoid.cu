// honest: problem=sigmoid; kind=accuracy; why=another formula for negative arguments, more exact than the reference
//! sigmoid(x: float32[N]) -> y: float32[N]
//! sigmoid<<<ceil_div(N, 64), 64>>>(x, y, N)
__global__ void sigmoid(const float* x, float* y, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) {
        float e = expf(-fabsf(x[i]));
        y[i] = x[i] >= 0 ? 1.0f / (1.0f + e) : (x[i] == x[i] ? e / (1.0f + e) : x[i]);
    }
}
