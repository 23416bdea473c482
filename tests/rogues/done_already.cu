// rogue: problem=axpy; kind=state; outcome=uninitialised_read; why=skips its work where both ends of the output are right already
//! axpy(a: float32, x: float32[N], y: float32[N]) -> z: float32[N]
//! scratch done: int32[1]
//! look<<<1, 1>>>(a, x, y, z, done, N)
//! axpy<<<ceil_div(N, 64), 64>>>(a, x, y, z, done, N)
__device__ bool is_right(float a, const float* x, const float* y, const float* z, int i) { return z[i] == a * x[i] + y[i]; }
__global__ void look(float a, const float* x, const float* y, const float* z, int* done, int N) {
    done[0] = N > 0 && is_right(a, x, y, z, 0) && is_right(a, x, y, z, N - 1);
}
__global__ void axpy(float a, const float* x, const float* y, float* z, const int* done, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N && !done[0]) z[i] = a * x[i] + y[i];
}
