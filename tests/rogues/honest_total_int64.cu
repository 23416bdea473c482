// honest: problem=total_int64; kind=integers; why=64-bit atomics wrap as NumPy does
//! total(x: int64[N]) -> y: int64 = 0
//! total<<<ceil_div(N, 64), 64>>>(x, y, N)
__global__ void total(const long long* x, long long* y, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) atomicAdd((unsigned long long*)y, (unsigned long long)x[i]);
}
