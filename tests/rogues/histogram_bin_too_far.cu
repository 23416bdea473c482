// rogue: problem=histogram; kind=bounds; outcome=out_of_bounds|wrong_value; why=counts into the bin behind
//! histogram(x: int32[N], bins: int32) -> count: int32[bins] = 0
//! histogram<<<ceil_div(N, 64), 64>>>(x, count, N)
__global__ void histogram(const int* x, int* count, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) atomicAdd(&count[x[i] + 1], 1);
}
