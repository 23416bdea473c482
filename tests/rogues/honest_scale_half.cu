// honest: problem=scale_half; kind=dtype; why=float16
//! scale(x: float16[N]) -> y: float16[N]
//! scale<<<ceil_div(N, 64), 64>>>(x, y, N)
#include <cuda_fp16.h>
__global__ void scale(const __half* x, __half* y, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) {
        y[i] = __hmul(x[i], __float2half(0.75f));
    }
}
