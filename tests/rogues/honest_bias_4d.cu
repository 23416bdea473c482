// honest: problem=bias_4d; kind=shapes; why=four axes
//! bias(x: float32[B, C, H, W], b: float32[C]) -> y: float32[B, C, H, W]
//! bias<<<ceil_div(B * C * H * W, 64), 64>>>(x, b, y, B * C * H * W, C, H * W)
__global__ void bias(const float* x, const float* b, float* y, long long count, int C, int area) {
    long long i = blockIdx.x * 64LL + threadIdx.x;
    if (i < count) y[i] = x[i] + b[i / area % C];
}
