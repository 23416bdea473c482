// rogue: problem=row_sum; kind=synchronization; outcome=data_race|non_deterministic|wrong_value; why=no barrier before the next row of a block, which needs more than 1024 rows
//! row_sum(x: float32[M, N]) -> y: float32[M]
//! let rows = max(ceil_div(M, 1024), 1)
//! row_sum_kernel<<<ceil_div(M, rows), 128>>>(x, y, M, N, rows)
__global__ void row_sum_kernel(const float* x, float* y, int M, int N, int rows) {
    __shared__ float slots[4];
    const int first = blockIdx.x * rows, last = min(M, first + rows);
    for (int row = first; row < last; ++row) {
        float sum = 0.0f;
        for (int j = threadIdx.x; j < N; j += 128) sum += x[(long long)row * N + j];
        for (int s = 16; s > 0; s /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, s);
        if (threadIdx.x % 32 == 0) slots[threadIdx.x / 32] = sum;
        __syncthreads();
        if (threadIdx.x == 0) y[row] = slots[0] + slots[1] + slots[2] + slots[3];
    }
}
