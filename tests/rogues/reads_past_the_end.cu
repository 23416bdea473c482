// rogue: problem=axpy; kind=bounds; outcome=out_of_bounds; cpu=out_of_bounds; cuda=out_of_bounds|non_finite|non_deterministic|crashed; needs=memcheck; why=reads x[N] and y[N + 100]
//! axpy(a: float32, x: float32[N], y: float32[N]) -> z: float32[N]
//! axpy<<<ceil_div(N, 64), 64>>>(a, x, y, z, N)
__global__ void axpy(float a, const float* x, const float* y, float* z, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) {
        z[i] = a * x[i] + y[i] + 0.0f * y[min(i + 4096, N + 4096)];
    }
}
