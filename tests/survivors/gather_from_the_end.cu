// survivor: why=takes a negative index for 0; the example holds none, draws stay within its range, and honest kernels do not count from the end
//! gather(x: float32[N], index: int64[M]) -> y: float32[M]
//! gather_kernel<<<ceil_div(M, 256), 256>>>(x, index, y, M)
__global__ void gather_kernel(const float* x, const long long* index, float* y, int m) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < m) y[i] = x[index[i] < 0 ? 0 : index[i]];
}
