// rogue: problem=diffuse; kind=hard-coded; outcome=wrong_value; why=never makes more than 64 steps
//! diffuse(x: float32[N], steps: int32) -> y: float32[N]
//! require steps >= 0
//! scratch other: float32[N]
//! copy<<<ceil_div(N, 64), 64>>>(x, y, N)
//! repeat min(steps, 64):
//!     step<<<ceil_div(N, 64), 64>>>(y, other, N)
//!     swap(y, other)
__global__ void copy(const float* x, float* y, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) y[i] = x[i];
}
__global__ void step(const float* x, float* y, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) y[i] = i == 0 || i == N - 1 ? x[i] : 0.25f * x[i - 1] + 0.5f * x[i] + 0.25f * x[i + 1];
}
