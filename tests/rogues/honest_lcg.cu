// honest: problem=lcg; kind=integers; why=32-bit integers wrap
//! lcg(x: int32[N]) -> y: int32[N]
//! lcg<<<ceil_div(N, 64), 64>>>(x, y, N)
__global__ void lcg(const int* x, int* y, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) {
        y[i] = (int)((unsigned)x[i] * 1664525u + 1013904223u);
    }
}
