// honest: problem=axpy; kind=vectorised; why=float4 where the address allows it, a scalar tail, and another kernel for misaligned views
//! axpy(a: float32, x: float32[N], y: float32[N]) -> z: float32[N]
//! when aligned(x, 16) and aligned(y, 16):
//!     axpy_vectors<<<ceil_div(ceil_div(N, 4), 64), 64>>>(a, x, y, z, N)
//! otherwise:
//!     axpy_elements<<<ceil_div(N, 64), 64>>>(a, x, y, z, N)
__global__ void axpy_vectors(float a, const float* x, const float* y, float* z, int N) {
    int i = 4 * (blockIdx.x * 64 + threadIdx.x);
    if (i + 3 < N) {
        float4 p = *reinterpret_cast<const float4*>(x + i), q = *reinterpret_cast<const float4*>(y + i);
        *reinterpret_cast<float4*>(z + i) = make_float4(a * p.x + q.x, a * p.y + q.y, a * p.z + q.z, a * p.w + q.w);
    } else {
        for (; i < N; ++i) z[i] = a * x[i] + y[i];
    }
}
__global__ void axpy_elements(float a, const float* x, const float* y, float* z, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) z[i] = a * x[i] + y[i];
}
