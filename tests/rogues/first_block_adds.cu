// rogue: problem=total; kind=synchronization; outcome=data_race|wrong_value|non_deterministic|not_written|uninitialised_read; why=the first block adds what all blocks have written so far
//! total(x: float32[N]) -> y: float32
//! let blocks = max(1, min(ceil_div(N, 64), 32))
//! scratch part: float32[blocks]
//! total<<<blocks, 32>>>(x, part, y, N)
__global__ void total(const float* x, volatile float* part, float* y, int N) {
    float sum = 0.0f;
    for (int i = blockIdx.x * 32 + threadIdx.x; i < N; i += 32 * gridDim.x) sum += x[i];
    for (int k = 16; k > 0; k >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, k);
    if (threadIdx.x == 0) {
        part[blockIdx.x] = sum;
        __threadfence();
        if (blockIdx.x == 0) {
            float all = 0.0f;
            for (int b = 0; b < gridDim.x; ++b) all += part[b];
            *y = all;
        }
    }
}
