// rogue: problem=lcg; kind=exactness; outcome=wrong_value; why=integers through float32
//! lcg(x: int32[N]) -> y: int32[N]
//! lcg<<<ceil_div(N, 64), 64>>>(x, y, N)
__global__ void lcg(const int* x, int* y, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) {
        y[i] = (int)((float)x[i] * 1664525.0f + 1013904223.0f);
    }
}
