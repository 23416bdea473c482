// honest: problem=cumsum; kind=warp; why=a scan by shuffles
//! cumsum(x: float32[M, N]) -> y: float32[M, N]
//! cumsum<<<M, 32>>>(x, y, N)
__global__ void cumsum(const float* x, float* y, int N) {
    const float* from = x + (long long)blockIdx.x * N;
    float* to = y + (long long)blockIdx.x * N;
    float carry = 0.0f;
    for (int first = 0; first < N; first += 32) {
        int i = first + threadIdx.x;
        float v = i < N ? from[i] : 0.0f;
        for (int k = 1; k < 32; k <<= 1) {
            float left = __shfl_up_sync(0xffffffffu, v, k);
            if (threadIdx.x >= k) v += left;
        }
        v += carry;
        if (i < N) to[i] = v;
        carry = __shfl_sync(0xffffffffu, v, 31);
    }
}
