// honest: problem=matmul; kind=atomics; why=the inner axis is split over blocks that add with atomics
//! matmul(a: float32[M, K], b: float32[K, N]) -> c: float32[M, N] = 0
//! matmul<<<(ceil_div(N, 8), ceil_div(M, 8), 2), (8, 8)>>>(a, b, c, M, K, N)
__global__ void matmul(const float* a, const float* b, float* c, int M, int K, int N) {
    int column = blockIdx.x * 8 + threadIdx.x, row = blockIdx.y * 8 + threadIdx.y;
    if (row >= M || column >= N) return;
    float sum = 0.0f;
    for (int k = blockIdx.z; k < K; k += 2) sum += a[(long long)row * K + k] * b[(long long)k * N + column];
    atomicAdd(&c[(long long)row * N + column], sum);
}
