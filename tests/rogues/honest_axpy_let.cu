// honest: problem=axpy; kind=header; why=let, and a block size by size
//! axpy(a: float32, x: float32[N], y: float32[N]) -> z: float32[N]
//! let width = min(64, max(N, 1))
//! axpy<<<ceil_div(N, width), width>>>(a, x, y, z, N)
__global__ void axpy(float a, const float* x, const float* y, float* z, int N) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N) {
        z[i] = a * x[i] + y[i];
    }
}
