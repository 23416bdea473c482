// honest: problem=total; kind=atomics; why=float atomics in any order, a 0-d result
//! total(x: float32[N]) -> y: float32 = 0
//! total<<<ceil_div(N, 64), 64>>>(x, y, N)
__global__ void total(const float* x, float* y, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) atomicAdd(y, x[i]);
}
