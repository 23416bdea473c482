// rogue: problem=axpy; kind=state; outcome=wrong_value|non_deterministic; why=zeros from the fourth launch on
//! axpy(a: float32, x: float32[N], y: float32[N]) -> z: float32[N]
//! axpy<<<ceil_div(N, 64), 64>>>(a, x, y, z, N)
__device__ int launches[1 << 17];
__global__ void axpy(float a, const float* x, const float* y, float* z, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) {
        z[i] = launches[i & 0x1ffff]++ < 3 ? a * x[i] + y[i] : 0.0f;
    }
}
