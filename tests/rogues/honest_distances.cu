// honest: problem=distances; kind=shapes; why=three sizes, two of them in the result
//! distances(a: float32[M, D], b: float32[N, D]) -> d: float32[M, N]
//! distances<<<(ceil_div(N, 32), M), 32>>>(a, b, d, N, D)
__global__ void distances(const float* a, const float* b, float* d, int N, int D) {
    int j = blockIdx.x * 32 + threadIdx.x, i = blockIdx.y;
    if (j >= N) return;
    float sum = 0.0f;
    for (int k = 0; k < D; ++k) {
        float gap = a[(long long)i * D + k] - b[(long long)j * D + k];
        sum += gap * gap;
    }
    d[(long long)i * N + j] = sqrtf(sum);
}
