// honest: problem=total_large; kind=reductions; why=a long reduction by one block's partial sums and atomics
//! total(x: float32[N]) -> y: float32 = 0
//! total<<<ceil_div(N, 2048), 32>>>(x, y, N)
__global__ void total(const float* x, float* y, int N) {
    float sum = 0.0f;
    long long first = blockIdx.x * 2048LL;
    for (int k = threadIdx.x; k < 2048 && first + k < N; k += 32) sum += x[first + k];
    for (int k = 16; k > 0; k >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, k);
    if (threadIdx.x == 0) atomicAdd(y, sum);
}
