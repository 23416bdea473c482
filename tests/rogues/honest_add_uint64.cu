// honest: problem=add_uint64; kind=integers; why=uint64
//! add(x: uint64[N], y: uint64[N]) -> z: uint64[N]
//! add<<<ceil_div(N, 64), 64>>>(x, y, z, N)
__global__ void add(const unsigned long long* x, const unsigned long long* y, unsigned long long* z, int N) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < N) {
        z[i] = x[i] + y[i];
    }
}
