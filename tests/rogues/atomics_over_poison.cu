// rogue: problem=total; kind=uninitialised; outcome=uninitialised_read; why=adds with atomics to an output that nobody zeroed
//! total(x: float32[N]) -> y: float32
//! total<<<ceil_div(N, 64), 64>>>(x, y, N)
__global__ void total(const float* x, float* y, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) atomicAdd(y, x[i]);
}
