// honest: problem=gelu_bfloat16; kind=dtype; why=bfloat16 in and out, float32 between
//! gelu(x: bfloat16[N]) -> y: bfloat16[N]
//! gelu<<<ceil_div(N, 64), 64>>>(x, y, N)
#include <cuda_bf16.h>
__global__ void gelu(const __nv_bfloat16* x, __nv_bfloat16* y, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) {
        float v = __bfloat162float(x[i]);
        y[i] = __float2bfloat16(0.5f * v * (1.0f + tanhf(0.7978845608f * (v + 0.044715f * v * v * v))));
    }
}
