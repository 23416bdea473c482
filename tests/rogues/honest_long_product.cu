// honest: problem=square_weights; kind=exactness; why=the square of an index in 64 bits
//! weigh(x: float32[N]) -> y: float32[N]
//! weigh<<<ceil_div(N, 128), 128>>>(x, y, N)
__global__ void weigh(const float* x, float* y, int N) {
    int i = blockIdx.x * 128 + threadIdx.x;
    if (i < N) y[i] = x[i] * (float)((long long)i * i);
}
