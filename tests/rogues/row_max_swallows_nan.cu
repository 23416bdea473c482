// rogue: problem=row_max; kind=special-values; outcome=non_finite; why=NaN loses every comparison
//! row_max(x: float32[M, N]) -> y: float32[M]
//! require N >= 1
//! row_max<<<ceil_div(M, 32), 32>>>(x, y, M, N)
__global__ void row_max(const float* x, float* y, int M, int N) {
    int row = blockIdx.x * 32 + threadIdx.x;
    if (row >= M) return;
    const float* from = x + (long long)row * N;
    float top = from[0];
    for (int i = 1; i < N; ++i) top = fmaxf(top, from[i]);
    y[row] = top;
}
