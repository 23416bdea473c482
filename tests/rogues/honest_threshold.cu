// honest: problem=threshold; kind=contract; why=elements that equal the threshold are kept
//! threshold(x: float32[N], t: float32) -> y: float32[N]
//! threshold<<<ceil_div(N, 64), 64>>>(x, t, y, N)
__global__ void threshold(const float* x, float t, float* y, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) y[i] = x[i] >= t ? x[i] : 0.0f;
}
