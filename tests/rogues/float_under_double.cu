// rogue: problem=axpy_float64; kind=precision; outcome=precision_downgraded; why=float32 arithmetic under a float64 contract
//! axpy(a: float64, x: float64[N], y: float64[N]) -> z: float64[N]
//! axpy<<<ceil_div(N, 64), 64>>>(a, x, y, z, N)
__global__ void axpy(double a, const double* x, const double* y, double* z, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) {
        z[i] = (float)a * (float)x[i] + (float)y[i];
    }
}
