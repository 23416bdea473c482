// rogue: problem=axpy; kind=layout; outcome=wrong_value|out_of_bounds; why=declares a strided input and takes it for contiguous
//! axpy(a: float32, x: strided float32[N], y: float32[N]) -> z: float32[N]
//! axpy<<<ceil_div(N, 64), 64>>>(a, x, y, z, N)
__global__ void axpy(float a, const float* x, const float* y, float* z, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) {
        z[i] = a * x[i] + y[i];
    }
}
