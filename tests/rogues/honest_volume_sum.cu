// honest: problem=volume_sum; kind=shapes; why=three axes, two of them added up
//! volume_sum(x: float32[B, M, N]) -> y: float32[B]
//! volume_sum<<<B, 32>>>(x, y, M * N)
__global__ void volume_sum(const float* x, float* y, int count) {
    float sum = 0.0f;
    for (int i = threadIdx.x; i < count; i += 32) sum += x[(long long)blockIdx.x * count + i];
    for (int k = 16; k > 0; k >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, k);
    if (threadIdx.x == 0) y[blockIdx.x] = sum;
}
