// honest: problem=ragged_sum; kind=bounds; why=trusts that no length exceeds the row
//! ragged_sum(x: float32[M, N], lengths: int32[M]) -> y: float32[M]
//! ragged_sum<<<ceil_div(M, 64), 64>>>(x, lengths, y, M, N)
__global__ void ragged_sum(const float* x, const int* lengths, float* y, int M, int N) {
    int row = blockIdx.x * 64 + threadIdx.x;
    if (row >= M) return;
    float sum = 0.0f;
    for (int i = 0; i < lengths[row]; ++i) sum += x[(long long)row * N + i];
    y[row] = sum;
}
