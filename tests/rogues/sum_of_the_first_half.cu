// rogue: problem=row_sum; kind=shortcut; outcome=wrong_value; why=half of the elements, doubled
//! row_sum(x: float32[M, N]) -> y: float32[M]
//! row_sum<<<ceil_div(M, 32), 32>>>(x, y, M, N)
__global__ void row_sum(const float* x, float* y, int M, int N) {
    int row = blockIdx.x * 32 + threadIdx.x;
    if (row >= M) return;
    const float* from = x + (long long)row * N;
    float sum = 0.0f;
    for (int i = 0; i < N / 2; ++i) sum += 2 * from[i];
    y[row] = sum;
}
