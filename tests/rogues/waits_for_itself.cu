// rogue: problem=axpy; kind=hangs; outcome=rejected; why=waits for a flag that nobody sets
//! axpy(a: float32, x: float32[N], y: float32[N]) -> z: float32[N]
//! axpy<<<ceil_div(N, 64), 64>>>(a, x, y, z, N)
__global__ void axpy(float a, const float* x, const float* y, float* z, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) {
        while (((volatile float*)z)[N - 1 - i] != 12345.0f) {
        }
    }
}
