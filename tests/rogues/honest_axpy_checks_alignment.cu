// honest: problem=axpy; kind=vectorised; why=looks at the addresses in the kernel
//! axpy(a: float32, x: float32[N], y: float32[N]) -> z: float32[N]
//! axpy<<<ceil_div(N, 128), 64>>>(a, x, y, z, N)
__global__ void axpy(float a, const float* x, const float* y, float* z, int N) {
    int i = 2 * (blockIdx.x * 64 + threadIdx.x);
    bool is_aligned = (((unsigned long long)x | (unsigned long long)y) & 7) == 0;
    if (is_aligned && i + 1 < N) {
        float2 p = *(const float2*)(x + i), q = *(const float2*)(y + i);
        *(float2*)(z + i) = make_float2(a * p.x + q.x, a * p.y + q.y);
        return;
    }
    for (int k = i; k < min(i + 2, N); ++k) z[k] = a * x[k] + y[k];
}
