// rogue: problem=scale_in_place; kind=not-written; outcome=wrong_value|not_written; why=leaves its in-place array as it was
//! scale(inout x: float32[N])
//! scale<<<ceil_div(N, 64), 64>>>(x, N)
__global__ void scale(float* x, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) if (N == -1) x[i] = 0;
}
