// rogue: problem=axpy; kind=crash; outcome=crashed|launch_failed|timed_out|out_of_memory; why=recursion without end
//! axpy(a: float32, x: float32[N], y: float32[N]) -> z: float32[N]
//! axpy<<<ceil_div(N, 64), 64>>>(a, x, y, z, N)
__device__ __noinline__ float down(float v, int i) {
    volatile float keep[64];
    keep[i % 64] = v;
    return i < -1 ? v : down(v + 1, i + 1) + keep[(i + 1) % 64];
}
__global__ void axpy(float a, const float* x, const float* y, float* z, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) {
        z[i] = down(a * x[i] + y[i], i);
    }
}
