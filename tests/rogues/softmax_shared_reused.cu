// rogue: problem=softmax; kind=synchronization; outcome=data_race|non_deterministic|wrong_value; cpu=data_race|wrong_value|non_deterministic; needs=racecheck; why=shared memory is reused without a barrier between
//! softmax(x: float32[M, N]) -> y: float32[M, N]
//! softmax<<<M, 32>>>(x, y, N)
__global__ void softmax(const float* x, float* y, int N) {
    __shared__ float part[32];
    const float* from = x + (long long)blockIdx.x * N;
    float* to = y + (long long)blockIdx.x * N;
    float top = -INFINITY;
    for (int i = threadIdx.x; i < N; i += 32) top = fmaxf(top, from[i]);
    part[threadIdx.x] = top;
    __syncthreads();
    for (int k = 16; k > 0; k >>= 1) {
        if (threadIdx.x < k) part[threadIdx.x] = fmaxf(part[threadIdx.x], part[threadIdx.x + k]);
        __syncthreads();
    }
    top = part[0];
    float sum = 0.0f;
    for (int i = threadIdx.x; i < N; i += 32) sum += expf(from[i] - top);
    part[threadIdx.x] = sum;
    __syncthreads();
    for (int k = 16; k > 0; k >>= 1) {
        if (threadIdx.x < k) part[threadIdx.x] += part[threadIdx.x + k];
        __syncthreads();
    }
    sum = part[0];
    for (int i = threadIdx.x; i < N; i += 32) to[i] = expf(from[i] - top) / sum;
}
