// rogue: problem=axpy; kind=not-written; outcome=not_written; why=N // 4 vectors and no tail
//! axpy(a: float32, x: float32[N], y: float32[N]) -> z: float32[N]
//! axpy<<<ceil_div(N, 64), 64>>>(a, x, y, z, N)
__global__ void axpy(float a, const float* x, const float* y, float* z, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    for (int k = 4 * i; k + 3 < N && k < 4 * i + 4; ++k) z[k] = a * x[k] + y[k];
}
