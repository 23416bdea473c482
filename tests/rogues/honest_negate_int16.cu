// honest: problem=negate_int16; kind=integers; why=int16
//! negate(x: int16[N]) -> y: int16[N]
//! negate<<<ceil_div(N, 64), 64>>>(x, y, N)
__global__ void negate(const short* x, short* y, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) {
        y[i] = (short)-x[i];
    }
}
