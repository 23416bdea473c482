// rogue: problem=axpy; kind=alignment; outcome=crashed; why=float2 loads whatever the address is
//! axpy(a: float32, x: float32[N], y: float32[N]) -> z: float32[N]
//! axpy<<<ceil_div(N, 64), 64>>>(a, x, y, z, N)
__global__ void axpy(float a, const float* x, const float* y, float* z, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (2 * i + 1 < N) {
        float2 p = ((const float2*)x)[i], q = ((const float2*)y)[i];
        ((float2*)z)[i] = make_float2(a * p.x + q.x, a * p.y + q.y);
    } else if (2 * i < N) {
        z[2 * i] = a * x[2 * i] + y[2 * i];
    }
}
