// rogue: problem=axpy; kind=determinism; outcome=rejected; why=one launch in 65537 is wrong, as the time will have it
//! axpy(a: float32, x: float32[N], y: float32[N]) -> z: float32[N]
//! axpy<<<ceil_div(N, 64), 64>>>(a, x, y, z, N)
__global__ void axpy(float a, const float* x, const float* y, float* z, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) z[i] = i == 0 && (clock64() >> 3) % 65537 == 5 ? 0.0f : a * x[i] + y[i];
}
