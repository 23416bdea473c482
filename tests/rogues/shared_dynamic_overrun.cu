// rogue: problem=row_sum; kind=bounds; outcome=out_of_bounds; cpu=out_of_bounds; needs=memcheck; why=half of the dynamic shared memory that it uses
//! row_sum(x: float32[M, N]) -> y: float32[M]
//! row_sum<<<M, 64, 32 * sizeof(float32)>>>(x, y, N)
__global__ void row_sum(const float* x, float* y, int N) {
    extern __shared__ float part[];
    float sum = 0.0f;
    for (int i = threadIdx.x; i < N; i += 64) sum += x[(long long)blockIdx.x * N + i];
    part[threadIdx.x] = sum;
    __syncthreads();
    for (int k = 32; k > 0; k >>= 1) {
        if (threadIdx.x < k) part[threadIdx.x] += part[threadIdx.x + k];
        __syncthreads();
    }
    if (threadIdx.x == 0) y[blockIdx.x] = part[0];
}
