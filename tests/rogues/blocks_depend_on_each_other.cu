// rogue: problem=cumsum; kind=synchronization; outcome=non_deterministic|wrong_value|uninitialised_read; cpu=data_race|wrong_value|uninitialised_read|non_deterministic; cuda=data_race|non_deterministic|wrong_value|uninitialised_read; why=each block reads what the block before wrote
//! cumsum(x: float32[M, N]) -> y: float32[M, N]
//! cumsum<<<ceil_div(N, 16), 32>>>(x, y, M, N)
__global__ void cumsum(const float* x, float* y, int M, int N) {
    for (int row = threadIdx.x; row < M; row += 32) {
        int first = blockIdx.x * 16;
        float sum = first ? y[(long long)row * N + first - 1] : 0.0f;
        for (int i = first; i < min(first + 16, N); ++i) y[(long long)row * N + i] = sum += x[(long long)row * N + i];
    }
}
