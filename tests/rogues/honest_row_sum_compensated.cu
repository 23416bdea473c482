// honest: problem=row_sum; kind=accuracy; why=Kahan summation, more exact than the reference
//! row_sum(x: float32[M, N]) -> y: float32[M]
//! row_sum<<<ceil_div(M, 32), 32>>>(x, y, M, N)
__global__ void row_sum(const float* x, float* y, int M, int N) {
    int row = blockIdx.x * 32 + threadIdx.x;
    if (row >= M) return;
    const float* from = x + (long long)row * N;
    float sum = 0.0f, lost = 0.0f;
    for (int i = 0; i < N; ++i) {
        float t = sum + from[i];
        lost += fabsf(sum) >= fabsf(from[i]) ? (sum - t) + from[i] : (from[i] - t) + sum;
        sum = t;
    }
    y[row] = isfinite(lost) ? sum + lost : sum;
}
