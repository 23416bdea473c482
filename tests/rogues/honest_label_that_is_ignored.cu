// honest: problem=cross_entropy; kind=values; why=a label of -100 is ignored, others index
//! cross_entropy(x: float32[M, N], t: int64[M]) -> y: float32[M]
//! cross_entropy<<<ceil_div(M, 64), 64>>>(x, t, y, M, N)
__global__ void cross_entropy(const float* x, const long long* t, float* y, int M, int N) {
    int row = blockIdx.x * 64 + threadIdx.x;
    if (row >= M) return;
    x += (long long)row * N;
    float top = -INFINITY, sum = 0.0f;
    for (int i = 0; i < N; ++i) top = x[i] > top || x[i] != x[i] ? x[i] : top;
    for (int i = 0; i < N; ++i) sum += expf(x[i] - top);
    y[row] = t[row] == -100 ? 0.0f : top + logf(sum) - x[t[row]];
}
