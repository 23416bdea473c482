// rogue: problem=tiny; kind=numerics; outcome=wrong_value; why=denormal results become 0
//! tiny_each(x: float32[N]) -> y: float32[N]
//! tiny_each<<<ceil_div(N, 64), 64>>>(x, y, N)
__global__ void tiny_each(const float* x, float* y, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) {
        float v = x[i] * 1e-30f;
        y[i] = fabsf(v) < 1e-32f ? 0.0f : v;
    }
}
