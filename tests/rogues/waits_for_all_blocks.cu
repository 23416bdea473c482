// rogue: problem=total; kind=hangs; outcome=rejected; why=blocks wait for more blocks than can run
//! total(x: float32[N]) -> y: float32 = 0
//! total<<<ceil_div(N, 64), 64>>>(x, y, N)
__device__ unsigned arrived;
__global__ void total(const float* x, float* y, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) atomicAdd(y, x[i]);
    if (threadIdx.x == 0) {
        atomicAdd(&arrived, 1u);
        while (atomicAdd(&arrived, 0u) < 100000u) {
        }
    }
}
