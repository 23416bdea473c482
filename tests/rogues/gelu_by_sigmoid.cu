// rogue: problem=gelu_bfloat16; kind=numerics; outcome=wrong_value|non_finite; why=x · sigmoid(1.702 x) for the tanh formula
//! gelu(x: bfloat16[N]) -> y: bfloat16[N]
//! gelu<<<ceil_div(N, 64), 64>>>(x, y, N)
#include <cuda_bf16.h>
__global__ void gelu(const __nv_bfloat16* x, __nv_bfloat16* y, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) {
        float v = __bfloat162float(x[i]);
        y[i] = __float2bfloat16(v / (1.0f + expf(-1.702f * v)));
    }
}
