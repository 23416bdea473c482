// honest: problem=gather; kind=layout; why=indices as input
//! gather(x: float32[V], index: int64[N]) -> y: float32[N]
//! gather<<<ceil_div(N, 64), 64>>>(x, index, y, N)
__global__ void gather(const float* x, const long long* index, float* y, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) y[i] = x[index[i]];
}
