// honest: problem=histogram; kind=atomics; why=integer atomics give the same counts in any order
//! histogram(x: int32[N], bins: int32) -> count: int32[bins] = 0
//! histogram<<<ceil_div(N, 64), 64>>>(x, count, N)
__global__ void histogram(const int* x, int* count, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) atomicAdd(&count[x[i]], 1);
}
