// rogue: problem=histogram; kind=hard-coded; outcome=wrong_value|not_written; why=sixteen bins
//! histogram(x: int32[N], bins: int32) -> count: int32[bins] = 0
//! histogram<<<ceil_div(N, 64), 64>>>(x, count, N)
__global__ void histogram(const int* x, int* count, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) if (x[i] < 15) atomicAdd(&count[x[i]], 1);
}
