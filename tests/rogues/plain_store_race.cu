// rogue: problem=row_max; kind=synchronization; outcome=non_deterministic|wrong_value; cpu=data_race|wrong_value|non_deterministic; why=all threads store their own element
//! row_max(x: float32[M, N]) -> y: float32[M]
//! require N >= 1
//! row_max<<<M, 64>>>(x, y, N)
__global__ void row_max(const float* x, float* y, int N) {
    for (int i = threadIdx.x; i < N; i += 64) y[blockIdx.x] = x[(long long)blockIdx.x * N + i];
}
