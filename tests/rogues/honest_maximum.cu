// honest: problem=maximum; kind=special-values; why=NaN of either side wins
//! greatest(x: float32[N], y: float32[N]) -> z: float32[N]
//! greatest<<<ceil_div(N, 64), 64>>>(x, y, z, N)
__global__ void greatest(const float* x, const float* y, float* z, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) {
        z[i] = x[i] != x[i] ? x[i] : (y[i] != y[i] || y[i] > x[i] ? y[i] : x[i]);
    }
}
