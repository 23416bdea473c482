// rogue: problem=scale_in_place; kind=mutation; outcome=wrong_value; why=scales twice what it should
//! scale(inout x: float32[N])
//! scale<<<ceil_div(N, 64), 64>>>(x, N)
__global__ void scale(float* x, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) x[i] *= 1.5f * 1.5f;
}
