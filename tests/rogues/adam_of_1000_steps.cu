// rogue: problem=adam_step; kind=scalars; outcome=wrong_value; why=its corrections stop changing after a thousand steps
//! adam_step(inout p: float32[N], inout m: float32[N], inout v: float32[N], g: float32[N], t: int32)
//! adam_kernel<<<ceil_div(N, 128), 128>>>(p, m, v, g, t, N)
__global__ void adam_kernel(float* p, float* m, float* v, const float* g, int t, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double b1 = 1, b2 = 1;
    for (int s = 0; s < t && s < 1000; ++s) { b1 *= 0.9; b2 *= 0.999; }
    for (int s = 0; s > t; --s) { b1 /= 0.9; b2 /= 0.999; }
    float mm = 0.9f * m[i] + 0.1f * g[i], vv = 0.999f * v[i] + 0.001f * g[i] * g[i];
    m[i] = mm; v[i] = vv;
    p[i] -= 1e-3f * (mm / (float)(1 - b1)) / (sqrtf(vv / (float)(1 - b2)) + 1e-8f);
}
