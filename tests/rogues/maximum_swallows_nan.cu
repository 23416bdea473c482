// rogue: problem=maximum; kind=special-values; outcome=non_finite; why=fmaxf takes the other side of a NaN
//! greatest(x: float32[N], y: float32[N]) -> z: float32[N]
//! greatest<<<ceil_div(N, 64), 64>>>(x, y, z, N)
__global__ void greatest(const float* x, const float* y, float* z, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) {
        z[i] = fmaxf(x[i], y[i]);
    }
}
