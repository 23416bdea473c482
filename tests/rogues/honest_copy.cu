// honest: problem=copy; kind=elementwise; why=the reference is the identity
//! copy(x: float32[N]) -> y: float32[N]
//! copy<<<ceil_div(N, 64), 64>>>(x, y, N)
__global__ void copy(const float* x, float* y, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) {
        y[i] = x[i];
    }
}
