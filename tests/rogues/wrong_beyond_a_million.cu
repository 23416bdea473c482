// rogue: problem=axpy; kind=hard-coded; outcome=wrong_value|non_finite; why=clips inputs beyond a million
//! axpy(a: float32, x: float32[N], y: float32[N]) -> z: float32[N]
//! axpy<<<ceil_div(N, 64), 64>>>(a, x, y, z, N)
__global__ void axpy(float a, const float* x, const float* y, float* z, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) {
        z[i] = a * fminf(fmaxf(x[i], -1e6f), 1e6f) + y[i];
    }
}
