// honest: problem=sparse_product; kind=bounds; why=trusts that offsets rise and that columns index
//! sparse_product(offsets: int32[M + 1], columns: int32[Z], values: float32[Z], x: float32[N]) -> y: float32[M]
//! sparse_product<<<M, 32>>>(offsets, columns, values, x, y)
__global__ void sparse_product(const int* offsets, const int* columns, const float* values, const float* x, float* y) {
    int begin = offsets[blockIdx.x], end = offsets[blockIdx.x + 1];
    float sum = 0.0f;
    for (int i = begin + threadIdx.x; i < end; i += 32) sum += values[i] * x[columns[i]];
    for (int s = 16; s > 0; s /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, s);
    if (threadIdx.x == 0) y[blockIdx.x] = sum;
}
