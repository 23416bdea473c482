// honest: problem=reverse; kind=edges; why=indices run backwards
//! reverse(x: float32[N]) -> y: float32[N]
//! reverse<<<ceil_div(N, 64), 64>>>(x, y, N)
__global__ void reverse(const float* x, float* y, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) {
        y[i] = x[N - 1 - i];
    }
}
