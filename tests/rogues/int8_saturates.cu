// rogue: problem=add_one_int8; kind=exactness; outcome=wrong_value; why=saturates where the reference wraps
//! add_one(x: int8[N]) -> y: int8[N]
//! add_one<<<ceil_div(N, 64), 64>>>(x, y, N)
__global__ void add_one(const signed char* x, signed char* y, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) {
        y[i] = x[i] == 127 ? 127 : x[i] + 1;
    }
}
