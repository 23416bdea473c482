// rogue: problem=axpy; kind=numerics; outcome=wrong_value; why=inputs below 1e-5 count as 0
//! axpy(a: float32, x: float32[N], y: float32[N]) -> z: float32[N]
//! axpy<<<ceil_div(N, 64), 64>>>(a, x, y, z, N)
__global__ void axpy(float a, const float* x, const float* y, float* z, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) {
        z[i] = a * (fabsf(x[i]) < 1e-2f && fabsf(y[i]) < 1e-2f ? 0.0f : x[i]) + y[i];
    }
}
