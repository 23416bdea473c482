// rogue: problem=axpy; kind=contract; outcome=wrong_dtype; why=a float64 result for a float32 contract
//! axpy(a: float32, x: float32[N], y: float32[N]) -> z: float64[N]
//! axpy<<<ceil_div(N, 64), 64>>>(a, x, y, z, N)
__global__ void axpy(float a, const float* x, const float* y, double* z, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) {
        z[i] = a * x[i] + y[i];
    }
}
