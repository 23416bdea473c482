// rogue: problem=row_sum; kind=limits; outcome=launch_failed; why=shared memory for a whole row of any length
//! row_sum(x: float32[M, N]) -> y: float32[M]
//! row_sum<<<M, 32, 64 * N>>>(x, y, N)
__global__ void row_sum(const float* x, float* y, int N) {
    extern __shared__ float row[];
    for (int i = threadIdx.x; i < N; i += 32) row[i] = x[(long long)blockIdx.x * N + i];
    __syncthreads();
    if (threadIdx.x == 0) {
        float sum = 0.0f;
        for (int i = 0; i < N; ++i) sum += row[i];
        y[blockIdx.x] = sum;
    }
}
