// rogue: problem=softmax; kind=synchronization; outcome=invalid_synchronization|wrong_value; device=cpu; why=a shuffle whose mask leaves lanes out
//! softmax(x: float32[M, N]) -> y: float32[M, N]
//! softmax<<<M, 32>>>(x, y, N)
__global__ void softmax(const float* x, float* y, int N) {
    const float* from = x + (long long)blockIdx.x * N;
    float* to = y + (long long)blockIdx.x * N;
    float top = -INFINITY, sum = 0.0f;
    for (int i = threadIdx.x; i < N; i += 32) top = fmaxf(top, from[i]);
    for (int k = 16; k > 0; k >>= 1) top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, k));
    for (int i = threadIdx.x; i < N; i += 32) sum += expf(from[i] - top);
    for (int k = 16; k > 0; k >>= 1) sum += __shfl_xor_sync(0x0000ffffu, sum, k);
    for (int i = threadIdx.x; i < N; i += 32) to[i] = expf(from[i] - top) / sum;
}
