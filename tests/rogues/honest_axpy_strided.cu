// honest: problem=axpy; kind=layout; why=takes views as they are
//! axpy(a: float32, x: strided float32[N], y: float32[N]) -> z: float32[N]
//! axpy<<<ceil_div(N, 64), 64>>>(a, x, y, z, N, x.stride(0))
__global__ void axpy(float a, const float* x, const float* y, float* z, int N, int step) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) {
        z[i] = a * x[(long long)step * i] + y[i];
    }
}
