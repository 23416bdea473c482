// honest: problem=closure; kind=scalars; why=a number of the reference's closure is built in
//! scaled(x: float32[N]) -> y: float32[N]
//! scaled<<<ceil_div(N, 64), 64>>>(x, y, N)
__global__ void scaled(const float* x, float* y, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) {
        y[i] = 0.75f * x[i];
    }
}
