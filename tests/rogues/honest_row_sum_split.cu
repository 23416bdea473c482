// honest: problem=row_sum; kind=scratch; why=two launches and a scratch buffer
//! row_sum(x: float32[M, N]) -> y: float32[M]
//! scratch part: float32[M, 4]
//! first<<<ceil_div(4 * M, 32), 32>>>(x, part, M, N)
//! second<<<ceil_div(M, 32), 32>>>(part, y, M)
__global__ void first(const float* x, float* part, int M, int N) {
    int i = blockIdx.x * 32 + threadIdx.x;
    if (i >= 4 * M) return;
    float sum = 0.0f;
    for (int k = i % 4; k < N; k += 4) sum += x[(long long)(i / 4) * N + k];
    part[i] = sum;
}
__global__ void second(const float* part, float* y, int M) {
    int i = blockIdx.x * 32 + threadIdx.x;
    if (i < M) y[i] = (part[4 * i] + part[4 * i + 1]) + (part[4 * i + 2] + part[4 * i + 3]);
}
