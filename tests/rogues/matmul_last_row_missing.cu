// rogue: problem=matmul; kind=not-written; outcome=not_written; why=rows past a multiple of 8
//! matmul(a: float32[M, K], b: float32[K, N]) -> c: float32[M, N]
//! matmul<<<(ceil_div(N, 8), M // 8), (8, 8)>>>(a, b, c, M, K, N)
__global__ void matmul(const float* a, const float* b, float* c, int M, int K, int N) {
    int column = blockIdx.x * 8 + threadIdx.x, row = blockIdx.y * 8 + threadIdx.y;
    if (row >= M || column >= N) return;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k) sum += a[(long long)row * K + k] * b[(long long)k * N + column];
    c[(long long)row * N + column] = sum;
}
