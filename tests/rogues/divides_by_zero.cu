// rogue: problem=divide_int32; kind=crash; outcome=crashed|wrong_value; why=divides by zero where y is 1
//! divide(x: int32[N], y: int32[N]) -> z: int32[N]
//! divide<<<ceil_div(N, 64), 64>>>(x, y, z, N)
__global__ void divide(const int* x, const int* y, int* z, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) {
        int q = x[i] / (y[i] - 1);
        z[i] = q;
    }
}
