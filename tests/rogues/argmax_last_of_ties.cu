// rogue: problem=argmax; kind=exactness; outcome=wrong_value; why=the last of equal elements
//! argmax(x: float32[M, N]) -> y: int64[M]
//! require N >= 1
//! argmax<<<ceil_div(M, 32), 32>>>(x, y, M, N)
__global__ void argmax(const float* x, long long* y, int M, int N) {
    int row = blockIdx.x * 32 + threadIdx.x;
    if (row >= M) return;
    const float* from = x + (long long)row * N;
    int best = 0;
    for (int i = 1; i < N; ++i)
        if (from[best] == from[best] && (from[i] >= from[best] || from[i] != from[i])) best = i;
    y[row] = best;
}
