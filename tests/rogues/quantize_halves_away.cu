// rogue: problem=quantize; kind=ties; outcome=wrong_value; why=rounds halfway cases away from zero
//! quantize(x: float32[N], scale: float32) -> q: int8[N]
//! quantize<<<ceil_div(N, 64), 64>>>(x, scale, q, N)
__global__ void quantize(const float* x, float scale, signed char* q, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) q[i] = (signed char)fminf(fmaxf(roundf(x[i] / scale), -128.0f), 127.0f);
}
