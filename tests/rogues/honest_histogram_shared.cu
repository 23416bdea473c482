// honest: problem=histogram; kind=atomics; why=counts in shared memory first
//! histogram(x: int32[N], bins: int32) -> count: int32[bins] = 0
//! histogram<<<ceil_div(N, 256), 64, 4 * bins>>>(x, count, N, bins)
__global__ void histogram(const int* x, int* count, int N, int bins) {
    extern __shared__ int own[];
    for (int b = threadIdx.x; b < bins; b += 64) own[b] = 0;
    __syncthreads();
    for (int k = 0; k < 4; ++k) {
        int i = blockIdx.x * 256 + k * 64 + threadIdx.x;
        if (i < N) atomicAdd(&own[x[i]], 1);
    }
    __syncthreads();
    for (int b = threadIdx.x; b < bins; b += 64)
        if (own[b]) atomicAdd(&count[b], own[b]);
}
