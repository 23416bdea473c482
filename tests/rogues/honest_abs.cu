// honest: problem=abs; kind=elementwise; why=a bit operation
//! absolute(x: float32[N]) -> y: float32[N]
//! absolute<<<ceil_div(N, 64), 64>>>(x, y, N)
__global__ void absolute(const float* x, float* y, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) {
        y[i] = __uint_as_float(__float_as_uint(x[i]) & 0x7fffffffu);
    }
}
