// rogue: problem=row_sum; kind=bounds; outcome=out_of_bounds; device=cpu; cpu-needs=memcheck; why=clears one element of the array behind its own, which is not yet in use
//! row_sum(x: float32[M, N]) -> y: float32[M]
//! row_sum<<<M, 64>>>(x, y, N)
__global__ void row_sum(const float* x, float* y, int N) {
    __shared__ float part[2], whole[32];
    if (threadIdx.x <= 2) part[threadIdx.x] = 0.0f;
    __syncthreads();
    float sum = 0.0f;
    for (int i = threadIdx.x; i < N; i += 64) sum += x[(long long)blockIdx.x * N + i];
    for (int k = 16; k > 0; k >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, k);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        whole[0] = part[0] + part[1];
        y[blockIdx.x] = whole[0];
    }
}
