// rogue: problem=hypot; kind=numerics; outcome=wrong_value; why=scales against overflow, not against underflow
//! length(a: float32[N], b: float32[N]) -> c: float32[N]
//! length_kernel<<<ceil_div(N, 256), 256>>>(a, b, c, N)
__global__ void length_kernel(const float* a, const float* b, float* c, int n) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n) return;
    const float p = fabsf(a[i]), q = fabsf(b[i]), m = fmaxf(p, q);
    if (isinf(p) || isinf(q)) {
        c[i] = INFINITY;
    } else if (m > 1e15f) {
        c[i] = m * sqrtf((p / m) * (p / m) + (q / m) * (q / m));
    } else {
        c[i] = sqrtf(p * p + q * q);
    }
}
