// honest: problem=variance; kind=rows; why=Welford's recurrence
//! variance(x: float32[M, N]) -> y: float32[M]
//! variance<<<ceil_div(M, 32), 32>>>(x, y, M, N)
__global__ void variance(const float* x, float* y, int M, int N) {
    int row = blockIdx.x * 32 + threadIdx.x;
    if (row >= M) return;
    const float* from = x + (long long)row * N;
    double mean = 0.0, sum = 0.0;
    for (int i = 0; i < N; ++i) {
        double gap = from[i] - mean;
        mean += gap / (i + 1);
        sum += gap * (from[i] - mean);
    }
    y[row] = (float)(sum / N);
}
