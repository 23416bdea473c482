// rogue: problem=axpy; kind=determinism; outcome=rejected; why=blocks on the last multiprocessor leave y out
//! axpy(a: float32, x: float32[N], y: float32[N]) -> z: float32[N]
//! axpy<<<ceil_div(N, 64), 64>>>(a, x, y, z, N)
__device__ bool is_last() {
    unsigned id, count;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(id));
    asm volatile("mov.u32 %0, %%nsmid;" : "=r"(count));
    return id + 1 == count;
}
__global__ void axpy(float a, const float* x, const float* y, float* z, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) z[i] = is_last() ? a * x[i] : a * x[i] + y[i];
}
