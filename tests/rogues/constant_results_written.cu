// rogue: problem=min_max; kind=constant; outcome=wrong_value; why=a constant for a reduction
//! min_max(x: float32[N]) -> (least: float32, most: float32)
//! require N >= 1
//! min_max<<<1, 32>>>(x, least, most, N)
__global__ void min_max(const float* x, float* least, float* most, int N) {
    float low = x[0], high = x[0];
    for (int i = threadIdx.x; i < N; i += 32) {
        float v = x[i];
        low = v != v || v < low ? (low != low ? low : v) : low;
        high = v != v || v > high ? (high != high ? high : v) : high;
    }
    for (int k = 16; k > 0; k >>= 1) {
        float a = __shfl_xor_sync(0xffffffffu, low, k), b = __shfl_xor_sync(0xffffffffu, high, k);
        low = a != a || a < low ? (low != low ? low : a) : low;
        high = b != b || b > high ? (high != high ? high : b) : high;
    }
    if (threadIdx.x == 0) *least = -3.0f, *most = 3.0f;
}
