// rogue: problem=copy; kind=bounds; outcome=out_of_bounds|crashed|input_mutated; why=writes in front of its input
//! copy(x: float32[N]) -> y: float32[N]
//! copy<<<ceil_div(N, 64), 64>>>(x, y, N)
__global__ void copy(const float* x, float* y, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) {
        if (i == 0) ((float*)x)[-1] = 1.0f;
        y[i] = x[i];
    }
}
