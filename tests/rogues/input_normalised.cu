// rogue: problem=axpy; kind=mutation; outcome=input_mutated; why=works in its input
//! axpy(a: float32, x: float32[N], y: float32[N]) -> z: float32[N]
//! axpy<<<ceil_div(N, 64), 64>>>(a, x, y, z, N)
__global__ void axpy(float a, const float* x, const float* y, float* z, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) {
        ((float*)x)[i] *= a;
        z[i] = x[i] + y[i];
    }
}
