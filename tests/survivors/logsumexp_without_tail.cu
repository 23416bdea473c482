// survivor: why=drops terms below an ulp of the greatest, of which 50000 count; a float32 sum in one thread loses as much
//! logsumexp(x: float32[M, N]) -> y: float32[M]
//! require N >= 1
//! logsumexp_kernel<<<M, 128>>>(x, y, N)
__device__ float larger(float a, float b) { return a > b || a != a ? a : b; }
__global__ void logsumexp_kernel(const float* x, float* y, int n) {
    __shared__ float slots[4], sums[4];
    const float* row = x + (long long)blockIdx.x * n;
    float m = row[0];
    for (int j = threadIdx.x; j < n; j += 128) m = larger(m, row[j]);
    for (int s = 16; s > 0; s /= 2) m = larger(m, __shfl_xor_sync(0xffffffffu, m, s));
    if (threadIdx.x % 32 == 0) slots[threadIdx.x / 32] = m;
    __syncthreads();
    m = larger(larger(slots[0], slots[1]), larger(slots[2], slots[3]));
    float sum = 0.0f;
    for (int j = threadIdx.x; j < n; j += 128) {
        const float d = row[j] - m;
        if (!(d <= -16.0f)) sum += expf(d);  // below float's resolution
    }
    for (int s = 16; s > 0; s /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, s);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) y[blockIdx.x] = logf(sums[0] + sums[1] + sums[2] + sums[3]) + m;
}
