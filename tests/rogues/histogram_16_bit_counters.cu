// rogue: problem=histogram; kind=integers; outcome=wrong_value; why=two 16-bit counters share a word, and more than 65535 elements of one bin spill over
//! histogram(x: int32[N], bins: int32) -> h: int32[bins]
//! require bins <= 2048
//! histogram<<<1, 1024>>>(x, h, N, bins)
__global__ void histogram(const int* x, int* h, int N, int bins) {
    __shared__ unsigned pairs[1024];
    pairs[threadIdx.x] = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < N; i += 1024) atomicAdd(&pairs[x[i] / 2], x[i] % 2 ? 65536u : 1u);
    __syncthreads();
    for (int i = threadIdx.x; i < bins; i += 1024) h[i] = i % 2 ? pairs[i / 2] >> 16 : pairs[i / 2] & 65535u;
}
