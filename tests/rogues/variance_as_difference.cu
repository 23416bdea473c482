// rogue: problem=variance; kind=numerics; outcome=wrong_value; why=mean of squares less square of mean
//! variance(x: float32[M, N]) -> y: float32[M]
//! variance<<<ceil_div(M, 32), 32>>>(x, y, M, N)
__global__ void variance(const float* x, float* y, int M, int N) {
    int row = blockIdx.x * 32 + threadIdx.x;
    if (row >= M) return;
    const float* from = x + (long long)row * N;
    float mean = 0.0f;
    for (int i = 0; i < N; ++i) mean += from[i];
    mean /= N;
    float sum = 0.0f;
    for (int i = 0; i < N; ++i) sum += from[i] * from[i];
    y[row] = sum / N - mean * mean;
}
