// rogue: problem=sqrt; kind=numerics; outcome=wrong_value|non_finite; why=the bit trick and one step of Newton
//! sqrt_each(x: float32[N]) -> y: float32[N]
//! sqrt_each<<<ceil_div(N, 64), 64>>>(x, y, N)
__global__ void sqrt_each(const float* x, float* y, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) {
        float v = x[i];
        float r = __uint_as_float(0x1fbd1df5u + (__float_as_uint(v) >> 1));
        y[i] = v < 0 ? NAN : (v == 0 ? v : 0.5f * (r + v / r));
    }
}
