// rogue: problem=saturating_add; kind=exactness; outcome=wrong_value; why=wraps where the reference saturates
//! add(x: uint8[N], y: uint8[N]) -> z: uint8[N]
//! add<<<ceil_div(N, 64), 64>>>(x, y, z, N)
__global__ void add(const unsigned char* x, const unsigned char* y, unsigned char* z, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) {
        z[i] = (unsigned char)(x[i] + y[i]);
    }
}
