// rogue: problem=axpy; kind=precision; outcome=precision_downgraded; why=bfloat16 under a float32 contract
//! axpy(a: float32, x: float32[N], y: float32[N]) -> z: float32[N]
//! axpy<<<ceil_div(N, 64), 64>>>(a, x, y, z, N)
#include <cuda_bf16.h>
__global__ void axpy(float a, const float* x, const float* y, float* z, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) {
        z[i] = a * __bfloat162float(__float2bfloat16(x[i])) + y[i];
    }
}
