// rogue: problem=axpy; kind=contract; outcome=wrong_shape; why=takes fewer inputs than the reference
//! axpy(x: float32[N], y: float32[N]) -> z: float32[N]
//! axpy<<<ceil_div(N, 64), 64>>>(x, y, z, N)
__global__ void axpy(const float* x, const float* y, float* z, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) {
        z[i] = 1.5f * x[i] + y[i];
    }
}
