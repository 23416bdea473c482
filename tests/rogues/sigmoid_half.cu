// rogue: problem=sigmoid; kind=constant; outcome=wrong_value; why=one half everywhere
//! sigmoid_each(x: float32[N]) -> y: float32[N]
//! sigmoid_each<<<ceil_div(N, 64), 64>>>(x, y, N)
__global__ void sigmoid_each(const float* x, float* y, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) {
        y[i] = 0.5f;
    }
}
