// rogue: problem=softmax; kind=synchronization; outcome=data_race|non_deterministic|wrong_value|non_finite; needs=racecheck; cpu=data_race|wrong_value|non_deterministic|non_finite; why=a reduction overwrites what slower warps still read from its last call
//! softmax(x: float32[M, N]) -> y: float32[M, N]
//! softmax<<<M, 64>>>(x, y, N)
__device__ float reduce(float v, bool is_sum) {
    __shared__ float slots[2];
    for (int k = 16; k > 0; k >>= 1) {
        float other = __shfl_xor_sync(0xffffffffu, v, k);
        v = is_sum ? v + other : fmaxf(v, other);
    }
    if (threadIdx.x % 32 == 0) slots[threadIdx.x / 32] = v;
    __syncthreads();
    v = slots[0];
    for (int w = 1; w < 2; ++w) v = is_sum ? v + slots[w] : fmaxf(v, slots[w]);
    return v;
}
__global__ void softmax(const float* x, float* y, int N) {
    const float* from = x + (long long)blockIdx.x * N;
    float* to = y + (long long)blockIdx.x * N;
    float top = -INFINITY, sum = 0.0f;
    for (int i = threadIdx.x; i < N; i += 64) top = fmaxf(top, from[i]);
    top = reduce(top, false);
    for (int i = threadIdx.x; i < N; i += 64) sum += expf(from[i] - top);
    sum = reduce(sum, true);
    for (int i = threadIdx.x; i < N; i += 64) to[i] = expf(from[i] - top) / sum;
}
