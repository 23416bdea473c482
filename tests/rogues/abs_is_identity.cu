// rogue: problem=abs; kind=shortcut; outcome=wrong_value; why=right for inputs of one sign
//! abs_each(x: float32[N]) -> y: float32[N]
//! abs_each<<<ceil_div(N, 64), 64>>>(x, y, N)
__global__ void abs_each(const float* x, float* y, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) {
        y[i] = x[i];
    }
}
