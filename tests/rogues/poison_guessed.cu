// rogue: problem=axpy; kind=uninitialised; outcome=uninitialised_read|not_written; why=writes only where the output is not NaN
//! axpy(a: float32, x: float32[N], y: float32[N]) -> z: float32[N]
//! axpy<<<ceil_div(N, 64), 64>>>(a, x, y, z, N)
__global__ void axpy(float a, const float* x, const float* y, float* z, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) {
        if (z[i] == z[i]) z[i] = a * x[i] + y[i];
    }
}
