// rogue: problem=tiny; kind=constant; outcome=wrong_value; why=zeros where results are of the order 1e-30
//! tiny_each(x: float32[N]) -> y: float32[N]
//! tiny_each<<<ceil_div(N, 64), 64>>>(x, y, N)
__global__ void tiny_each(const float* x, float* y, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) {
        y[i] = 0.0f;
    }
}
