// rogue: problem=distances; kind=shortcut; outcome=not_written; why=computes the upper triangle only where both inputs are one array
//! distances(a: float32[M, K], b: float32[N, K]) -> d: float32[M, N]
//! distances_kernel<<<ceil_div(M * N, 128), 128>>>(a, b, d, M, N, K)
__global__ void distances_kernel(const float* a, const float* b, float* d, int M, int N, int K) {
    const int at = blockIdx.x * 128 + threadIdx.x;
    if (at >= M * N) return;
    const int i = at / N, j = at % N;
    if (a == b && j < i) return;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k) {
        const float t = a[(long long)i * K + k] - b[(long long)j * K + k];
        sum += t * t;
    }
    d[at] = sqrtf(sum);
}
