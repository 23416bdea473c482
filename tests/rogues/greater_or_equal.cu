// rogue: problem=greater; kind=exactness; outcome=wrong_value; why=equal elements count
//! greater(x: float32[N], y: float32[N]) -> z: bool[N]
//! greater<<<ceil_div(N, 64), 64>>>(x, y, z, N)
__global__ void greater(const float* x, const float* y, bool* z, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) {
        z[i] = x[i] >= y[i];
    }
}
