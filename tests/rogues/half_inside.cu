// rogue: problem=axpy; kind=precision; outcome=precision_downgraded; why=half precision under a float32 contract
//! axpy(a: float32, x: float32[N], y: float32[N]) -> z: float32[N]
//! axpy<<<ceil_div(N, 64), 64>>>(a, x, y, z, N)
#include <cuda_fp16.h>
__global__ void axpy(float a, const float* x, const float* y, float* z, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) {
        z[i] = __half2float(__float2half(a)) * __half2float(__float2half(x[i])) + __half2float(__float2half(y[i]));
    }
}
