// rogue: problem=axpy; kind=state; outcome=wrong_value; why=keeps the first result in a __device__ array and replays it
//! axpy(a: float32, x: float32[N], y: float32[N]) -> z: float32[N]
//! axpy<<<ceil_div(N, 64), 64>>>(a, x, y, z, N)
__device__ float kept[1 << 17];
__device__ bool is_kept[1 << 17];
__global__ void axpy(float a, const float* x, const float* y, float* z, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) {
        if (!is_kept[i & 0x1ffff]) {
            kept[i & 0x1ffff] = a * x[i] + y[i];
            is_kept[i & 0x1ffff] = true;
        }
        z[i] = kept[i & 0x1ffff];
    }
}
