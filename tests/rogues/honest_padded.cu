// honest: problem=padded; kind=contract; why=rows that equal a scalar are left out
//! masked(ids: int32[M], x: float32[M, N], pad: int32) -> y: float32[M, N]
//! masked_kernel<<<ceil_div(M * N, 256), 256>>>(ids, x, pad, y, M, N)
__global__ void masked_kernel(const int* ids, const float* x, int pad, float* y, int M, int N) {
    const long long i = blockIdx.x * 256LL + threadIdx.x;
    if (i >= (long long)M * N) return;
    y[i] = ids[i / N] == pad ? 0.0f : 2.0f * x[i] + 1.0f;
}
