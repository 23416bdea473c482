// honest: problem=norm3; kind=shapes; why=a size that the header fixes
//! norm3(x: float32[N, 3]) -> y: float32[N]
//! norm3<<<ceil_div(N, 64), 64>>>(x, y, N)
__global__ void norm3(const float* x, float* y, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) y[i] = x[3 * i] * x[3 * i] + x[3 * i + 1] * x[3 * i + 1] + x[3 * i + 2] * x[3 * i + 2];
}
