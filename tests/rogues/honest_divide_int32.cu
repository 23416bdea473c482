// honest: problem=divide_int32; kind=integers; why=division rounds down, not towards zero
//! divide(x: int32[N], y: int32[N]) -> z: int32[N]
//! divide<<<ceil_div(N, 64), 64>>>(x, y, z, N)
__global__ void divide(const int* x, const int* y, int* z, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) {
        int q = x[i] / y[i];
        z[i] = q - (x[i] % y[i] != 0 && (x[i] % y[i] < 0) != (y[i] < 0));
    }
}
