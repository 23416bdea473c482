// honest: problem=axpy; kind=elementwise; why=a grid-stride loop over few blocks
//! axpy(a: float32, x: float32[N], y: float32[N]) -> z: float32[N]
//! axpy<<<min(ceil_div(N, 64), num_sms), 64>>>(a, x, y, z, N)
__global__ void axpy(float a, const float* x, const float* y, float* z, int N) {
    for (int i = blockIdx.x * 64 + threadIdx.x; i < N; i += 64 * gridDim.x) z[i] = a * x[i] + y[i];
}
