// rogue: problem=axpy; kind=hangs; outcome=timed_out; why=waits in a method, where no rule looks, for a flag that nobody sets
//! axpy(a: float32, x: float32[N], y: float32[N]) -> z: float32[N]
//! axpy<<<ceil_div(N, 64), 64>>>(a, x, y, z, N)
struct Flag {
    volatile float* at;
    __device__ void wait() const {
        while (at[0] != 12345.0f) {
        }
    }
};
__global__ void axpy(float a, const float* x, const float* y, float* z, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) {
        Flag flag = {z + i};
        flag.wait();
        z[i] = a * x[i] + y[i];
    }
}
