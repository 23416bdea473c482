// rogue: problem=nearest; kind=numerics; outcome=wrong_value; why=ties below 32 go away from zero, not to even
//! nearest(x: float32[N]) -> y: float32[N]
//! nearest_kernel<<<ceil_div(N, 256), 256>>>(x, y, N)
__global__ void nearest_kernel(const float* x, float* y, int n) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) y[i] = fabsf(x[i]) < 32.0f ? roundf(x[i]) : rintf(x[i]);
}
