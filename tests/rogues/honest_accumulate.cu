// honest: problem=accumulate; kind=in-place; why=adds to its first argument
//! accumulate(inout y: float32[N], x: float32[N])
//! accumulate<<<ceil_div(N, 64), 64>>>(y, x, N)
__global__ void accumulate(float* y, const float* x, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) y[i] += x[i];
}
