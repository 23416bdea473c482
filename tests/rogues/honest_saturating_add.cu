// honest: problem=saturating_add; kind=integers; why=uint8 saturates at 255
//! add(x: uint8[N], y: uint8[N]) -> z: uint8[N]
//! add<<<ceil_div(N, 64), 64>>>(x, y, z, N)
__global__ void add(const unsigned char* x, const unsigned char* y, unsigned char* z, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) {
        z[i] = (unsigned char)min(x[i] + y[i], 255);
    }
}
