// rogue: problem=argmax; kind=contract; outcome=wrong_dtype; why=int32 indices where the reference gives int64
//! argmax(x: float32[M, N]) -> y: int32[M]
//! require N >= 1
//! argmax<<<ceil_div(M, 32), 32>>>(x, y, M, N)
__global__ void argmax(const float* x, int* y, int M, int N) {
    int row = blockIdx.x * 32 + threadIdx.x;
    if (row >= M) return;
    const float* from = x + (long long)row * N;
    int best = 0;
    for (int i = 1; i < N; ++i)
        if (from[best] == from[best] && (from[i] > from[best] || from[i] != from[i])) best = i;
    y[row] = best;
}
