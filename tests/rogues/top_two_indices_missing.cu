// rogue: problem=top_two; kind=not-written; outcome=not_written; why=values without their indices
//! top_two(x: float32[M, N]) -> (values: float32[M, 2], indices: int64[M, 2])
//! require N >= 2
//! top_two<<<ceil_div(M, 32), 32>>>(x, values, indices, M, N)
__device__ bool before(float a, float b) { return a > b || (a == a && b != b); }
__global__ void top_two(const float* x, float* values, long long* indices, int M, int N) {
    int row = blockIdx.x * 32 + threadIdx.x;
    if (row >= M) return;
    const float* from = x + (long long)row * N;
    int first = 0, second = -1;
    for (int i = 1; i < N; ++i) {
        if (before(from[i], from[first])) {
            second = first;
            first = i;
        } else if (second < 0 || before(from[i], from[second])) {
            second = i;
        }
    }
    values[2 * row] = from[first];
    values[2 * row + 1] = from[second];
    indices[2 * row] = first;
}
