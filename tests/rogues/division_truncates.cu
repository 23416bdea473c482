// rogue: problem=divide_int32; kind=exactness; outcome=wrong_value; why=rounds towards zero
//! divide(x: int32[N], y: int32[N]) -> z: int32[N]
//! divide<<<ceil_div(N, 64), 64>>>(x, y, z, N)
__global__ void divide(const int* x, const int* y, int* z, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) {
        z[i] = x[i] / y[i];
    }
}
