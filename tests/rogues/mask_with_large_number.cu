// rogue: problem=masked_fill; kind=special-values; outcome=non_finite; why=-1e30 for minus infinity
//! fill(x: float32[N], y: bool[N]) -> z: float32[N]
//! fill<<<ceil_div(N, 64), 64>>>(x, y, z, N)
__global__ void fill(const float* x, const bool* y, float* z, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) {
        z[i] = y[i] ? x[i] : -1e30f;
    }
}
