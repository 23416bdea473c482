// survivor: why=counts its launches and is wrong after 20000 of them; a verification makes some hundred, and the report says so
//! axpy(a: float32, x: float32[N], y: float32[N]) -> z: float32[N]
//! axpy_kernel<<<ceil_div(N, 256), 256>>>(a, x, y, z, N)
__device__ unsigned finished;
__global__ void axpy_kernel(float a, const float* x, const float* y, float* z, int n) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n) return;
    float v = a * x[i] + y[i];
    if (i == 0 && atomicAdd(&finished, 1u) >= 20000u) v *= 2.0f;
    z[i] = v;
}
