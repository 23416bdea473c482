// rogue: problem=matmul; kind=synchronization; outcome=data_race|non_deterministic|wrong_value; cpu=data_race|wrong_value|non_deterministic; needs=racecheck; why=tiles are overwritten before all have read them
//! matmul(a: float32[M, K], b: float32[K, N]) -> c: float32[M, N]
//! matmul<<<(ceil_div(N, 8), ceil_div(M, 8)), (8, 8)>>>(a, b, c, M, K, N)
__global__ void matmul(const float* a, const float* b, float* c, int M, int K, int N) {
    __shared__ float left[8][8], right[8][9];
    int tx = threadIdx.x, ty = threadIdx.y;
    int column = blockIdx.x * 8 + tx, row = blockIdx.y * 8 + ty;
    float sum = 0.0f;
    for (int first = 0; first < K; first += 8) {
        left[ty][tx] = row < M && first + tx < K ? a[(long long)row * K + first + tx] : 0.0f;
        right[ty][tx] = first + ty < K && column < N ? b[(long long)(first + ty) * N + column] : 0.0f;
        __syncthreads();
        for (int k = 0; k < 8; ++k) sum += left[ty][k] * right[k][tx];
    }
    if (row < M && column < N) c[(long long)row * N + column] = sum;
}
