// rogue: problem=transpose; kind=synchronization; outcome=data_race|non_deterministic|wrong_value; cpu=data_race|wrong_value|non_deterministic; cuda=data_race|wrong_value|non_deterministic|non_finite; needs=racecheck; why=the tile is read before it is whole
//! transpose(x: float32[M, N]) -> y: float32[N, M]
//! transpose<<<(ceil_div(N, 8), ceil_div(M, 8)), (8, 8)>>>(x, y, M, N)
__global__ void transpose(const float* x, float* y, int M, int N) {
    __shared__ float tile[8][9];
    int column = blockIdx.x * 8 + threadIdx.x, row = blockIdx.y * 8 + threadIdx.y;
    if (row < M && column < N) tile[threadIdx.y][threadIdx.x] = x[(long long)row * N + column];
    int to_row = blockIdx.x * 8 + threadIdx.y, to_column = blockIdx.y * 8 + threadIdx.x;
    if (to_row < N && to_column < M) y[(long long)to_row * M + to_column] = tile[threadIdx.x][threadIdx.y];
}
