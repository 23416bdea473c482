// rogue: problem=transpose; kind=layout; outcome=wrong_value|out_of_bounds; why=a strided matrix read with one stride
//! transpose(x: strided float32[M, N]) -> y: float32[N, M]
//! transpose<<<(ceil_div(N, 8), ceil_div(M, 8)), (8, 8)>>>(x, y, M, N, x.stride(0))
__global__ void transpose(const float* x, float* y, int M, int N, int step) {
    __shared__ float tile[8][9];
    int column = blockIdx.x * 8 + threadIdx.x, row = blockIdx.y * 8 + threadIdx.y;
    if (row < M && column < N) tile[threadIdx.y][threadIdx.x] = x[(long long)row * step + column];
    __syncthreads();
    int to_row = blockIdx.x * 8 + threadIdx.y, to_column = blockIdx.y * 8 + threadIdx.x;
    if (to_row < N && to_column < M) y[(long long)to_row * M + to_column] = tile[threadIdx.x][threadIdx.y];
}
