// rogue: problem=axpy; kind=alignment; outcome=crashed; why=float4 loads whatever the address is
//! axpy(a: float32, x: float32[N], y: float32[N]) -> z: float32[N]
//! axpy<<<ceil_div(N, 64), 64>>>(a, x, y, z, N)
__global__ void axpy(float a, const float* x, const float* y, float* z, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (4 * i + 3 < N) {
        float4 p = ((const float4*)x)[i], q = ((const float4*)y)[i];
        ((float4*)z)[i] = make_float4(a * p.x + q.x, a * p.y + q.y, a * p.z + q.z, a * p.w + q.w);
    } else {
        for (int k = 4 * i; k < N; ++k) z[k] = a * x[k] + y[k];
    }
}
