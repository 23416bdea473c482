// honest: problem=outer; kind=shapes; why=two vectors to a matrix
//! outer(x: float32[M], y: float32[N]) -> z: float32[M, N]
//! outer<<<ceil_div(M * N, 64), 64>>>(x, y, z, M, N)
__global__ void outer(const float* x, const float* y, float* z, int M, int N) {
    long long i = blockIdx.x * 64LL + threadIdx.x;
    if (i < (long long)M * N) z[i] = x[i / N] * y[i % N];
}
