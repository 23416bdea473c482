// rogue: problem=total; kind=synchronization; outcome=wrong_value|non_deterministic; cpu=data_race|non_deterministic|wrong_value; cpu-needs=racecheck; why=adds without atomics
//! total(x: float32[N]) -> y: float32 = 0
//! total<<<ceil_div(N, 64), 64>>>(x, y, N)
__global__ void total(const float* x, float* y, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) *y += x[i];
}
