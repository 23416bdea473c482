// honest: problem=relu; kind=special-values; why=NaN goes through
//! relu(x: float32[N]) -> y: float32[N]
//! relu<<<ceil_div(N, 64), 64>>>(x, y, N)
__global__ void relu(const float* x, float* y, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) {
        y[i] = x[i] > 0.0f ? x[i] : (x[i] != x[i] ? x[i] : 0.0f);
    }
}
