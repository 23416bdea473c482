// rogue: problem=row_sum_float64; kind=precision; outcome=precision_downgraded; why=a float32 accumulator under a float64 contract
//! row_sum(x: float64[M, N]) -> y: float64[M]
//! row_sum<<<ceil_div(M, 32), 32>>>(x, y, M, N)
__global__ void row_sum(const double* x, double* y, int M, int N) {
    int row = blockIdx.x * 32 + threadIdx.x;
    if (row >= M) return;
    const double* from = x + (long long)row * N;
    float sum = 0.0f;
    for (int i = 0; i < N; ++i) sum += (float)from[i];
    y[row] = sum;
}
