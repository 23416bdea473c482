// honest: problem=dot; kind=reductions; why=two vectors to one number
//! dot(x: float32[N], y: float32[N]) -> z: float32
//! dot<<<1, 32>>>(x, y, z, N)
__global__ void dot(const float* x, const float* y, float* z, int N) {
    float sum = 0.0f;
    for (int i = threadIdx.x; i < N; i += 32) sum += x[i] * y[i];
    for (int k = 16; k > 0; k >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, k);
    if (threadIdx.x == 0) *z = sum;
}
