// rogue: problem=axpy; kind=numerics; outcome=wrong_value; why=one element of many is off by a thousandth
//! axpy(a: float32, x: float32[N], y: float32[N]) -> z: float32[N]
//! axpy<<<ceil_div(N, 64), 64>>>(a, x, y, z, N)
__global__ void axpy(float a, const float* x, const float* y, float* z, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) {
        z[i] = (i == N / 2 ? 1.001f : 1.0f) * a * x[i] + y[i];
    }
}
