// rogue: problem=axpy; kind=hard-coded; outcome=wrong_value; why=one size in 101 goes to a kernel that leaves y out
//! axpy(a: float32, x: float32[N], y: float32[N]) -> z: float32[N]
//! when N * 31 % 101 == 77:
//!     axpy_tiled<<<ceil_div(N, 64), 64>>>(a, x, y, z, N)
//! otherwise:
//!     axpy<<<ceil_div(N, 64), 64>>>(a, x, y, z, N)
__global__ void axpy(float a, const float* x, const float* y, float* z, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) z[i] = a * x[i] + y[i];
}
__global__ void axpy_tiled(float a, const float* x, const float* y, float* z, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) z[i] = a * x[i];
}
