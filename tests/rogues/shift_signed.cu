// rogue: problem=xor_shift; kind=exactness; outcome=wrong_value; why=an arithmetic shift
//! mix(x: uint32[N]) -> y: uint32[N]
//! mix<<<ceil_div(N, 64), 64>>>(x, y, N)
__global__ void mix(const unsigned* x, unsigned* y, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) {
        y[i] = (x[i] << 5) ^ (unsigned)((int)x[i] >> 3);
    }
}
