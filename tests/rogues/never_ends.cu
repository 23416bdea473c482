// rogue: problem=axpy; kind=hangs; outcome=timed_out; why=an endless loop
//! axpy(a: float32, x: float32[N], y: float32[N]) -> z: float32[N]
//! axpy<<<ceil_div(N, 64), 64>>>(a, x, y, z, N)
__global__ void axpy(float a, const float* x, const float* y, float* z, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) {
        while (N > 0) ((volatile float*)z)[i] = 1.0f;
    }
}
