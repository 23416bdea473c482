// rogue: problem=axpy; kind=uninitialised; outcome=uninitialised_read|wrong_value; why=reads a scratch buffer that no kernel wrote
//! axpy(a: float32, x: float32[N], y: float32[N]) -> z: float32[N]
//! scratch old: float32[N]
//! axpy<<<ceil_div(N, 64), 64>>>(a, x, y, old, z, N)
__global__ void axpy(float a, const float* x, const float* y, const float* old, float* z, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) {
        z[i] = a * x[i] + y[i] + (old[i] > 1e30f ? 1.0f : 0.0f);
    }
}
