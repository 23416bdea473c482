// rogue: problem=histogram; kind=exactness; outcome=wrong_value|non_deterministic; cpu=data_race|non_deterministic|wrong_value; cpu-needs=racecheck; why=counts without atomics
//! histogram(x: int32[N], bins: int32) -> count: int32[bins] = 0
//! histogram<<<ceil_div(N, 64), 64>>>(x, count, N)
__global__ void histogram(const int* x, int* count, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) count[x[i]] = count[x[i]] + 1;
}
