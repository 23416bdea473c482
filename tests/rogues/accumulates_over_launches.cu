// rogue: problem=total; kind=state; outcome=wrong_value|non_deterministic; cpu=wrong_value|non_deterministic|data_race; why=a __device__ sum that nobody resets
//! total(x: float32[N]) -> y: float32 = 0
//! total<<<ceil_div(N, 64), 64>>>(x, y, N)
__device__ float sum;
__global__ void total(const float* x, float* y, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) atomicAdd(&sum, x[i]);
    if (i == N - 1) *y = sum;
}
