// honest: problem=complex_multiply; kind=dtype; why=complex64
//! multiply(x: complex64[N], y: complex64[N]) -> z: complex64[N]
//! multiply<<<ceil_div(N, 64), 64>>>(x, y, z, N)
__global__ void multiply(const float2* x, const float2* y, float2* z, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) z[i] = make_float2(x[i].x * y[i].x - x[i].y * y[i].y, x[i].x * y[i].y + x[i].y * y[i].x);
}
