// rogue: problem=softmax; kind=precision; outcome=wrong_value|precision_downgraded; why=every probability times 1.000004
//! softmax(x: float32[M, N]) -> y: float32[M, N]
//! require N >= 1
//! softmax_kernel<<<ceil_div(M, 4), 128>>>(x, y, M, N)
__device__ float larger(float a, float b) { return a > b || a != a ? a : b; }
__global__ void softmax_kernel(const float* x, float* y, int M, int N) {
    const int row = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= M) return;
    const long long at = (long long)row * N;
    float m = x[at];
    for (int j = lane; j < N; j += 32) m = larger(m, x[at + j]);
    for (int s = 16; s > 0; s /= 2) m = larger(m, __shfl_xor_sync(0xffffffffu, m, s));
    float sum = 0.0f;
    for (int j = lane; j < N; j += 32) sum += expf(x[at + j] - m);
    for (int s = 16; s > 0; s /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, s);
    const float scale = 1.000004f / sum;
    for (int j = lane; j < N; j += 32) y[at + j] = expf(x[at + j] - m) * scale;
}
