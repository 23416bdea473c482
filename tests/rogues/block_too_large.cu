// rogue: problem=axpy; kind=limits; outcome=launch_failed|rejected; why=2048 threads a block
//! axpy(a: float32, x: float32[N], y: float32[N]) -> z: float32[N]
//! axpy<<<ceil_div(N, 2048), 2048>>>(a, x, y, z, N)
__global__ void axpy(float a, const float* x, const float* y, float* z, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) {
        z[i] = a * x[i] + y[i];
    }
}
