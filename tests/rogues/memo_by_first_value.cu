// rogue: problem=axpy; kind=state; outcome=wrong_value; why=replays the last result when the first value of x looks the same
//! axpy(a: float32, x: float32[N], y: float32[N]) -> z: float32[N]
//! axpy<<<ceil_div(N, 64), 64>>>(a, x, y, z, N)
__device__ float kept[1 << 17];
__device__ unsigned keys[1 << 17];
__global__ void axpy(float a, const float* x, const float* y, float* z, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) {
        float now = a * x[i] + y[i];
        unsigned key = __float_as_uint(x[0]) >> 31;
        if (keys[i & 0x1ffff] != key + 1) {
            kept[i & 0x1ffff] = now;
            keys[i & 0x1ffff] = key + 1;
        }
        z[i] = kept[i & 0x1ffff];
    }
}
