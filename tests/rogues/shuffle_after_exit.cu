// rogue: problem=row_sum; kind=synchronization; outcome=invalid_synchronization|wrong_value|non_deterministic|non_finite; cpu=invalid_synchronization|wrong_value|uninitialised_read|non_finite|data_race; cuda=invalid_synchronization|wrong_value|non_deterministic|non_finite|not_written; why=lanes beyond the row have left when the others shuffle, and nobody writes the sum of an empty row
//! row_sum(x: float32[M, N]) -> y: float32[M]
//! row_sum<<<M, 64>>>(x, y, N)
__global__ void row_sum(const float* x, float* y, int N) {
    __shared__ float part[2];
    float sum = 0.0f;
    if (threadIdx.x >= N) return;
    for (int i = threadIdx.x; i < N; i += 64) sum += x[(long long)blockIdx.x * N + i];
    for (int k = 16; k > 0; k >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, k);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) y[blockIdx.x] = part[0] + part[1];
}
