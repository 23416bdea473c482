// rogue: problem=softmax; kind=alignment; outcome=crashed|out_of_bounds|wrong_value; cpu=crashed; why=rows read as float4 at odd N
//! softmax(x: float32[M, N]) -> y: float32[M, N]
//! softmax<<<ceil_div(M, 32), 32>>>(x, y, M, N)
__global__ void softmax(const float* x, float* y, int M, int N) {
    int row = blockIdx.x * 32 + threadIdx.x;
    if (row >= M) return;
    const float* from = x + (long long)row * N;
    float* to = y + (long long)row * N;
    float top = -INFINITY;
    for (int i = 0; i < N / 4; ++i) {
        float4 v = ((const float4*)from)[i];
        top = fmaxf(fmaxf(fmaxf(top, v.x), fmaxf(v.y, v.z)), v.w);
    }
    for (int i = N / 4 * 4; i < N; ++i) top = fmaxf(top, from[i]);
    float sum = 0.0f;
    for (int i = 0; i < N; ++i) sum += expf(from[i] - top);
    for (int i = 0; i < N; ++i) to[i] = expf(from[i] - top) / sum;
}
