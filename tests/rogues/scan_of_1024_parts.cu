// rogue: problem=cumsum_int32; kind=sizes; outcome=wrong_value; why=one block adds up the parts, one a thread, and from 1025 parts on the rest keep their own sums
//! cumsum(x: int32[N]) -> y: int64[N]
//! let P = ceil_div(N, 256)
//! scratch sums: int64[P]
//! add_up<<<ceil_div(P, 64), 64>>>(x, sums, N, P)
//! offsets<<<1, 1024>>>(sums, P)
//! spread<<<ceil_div(P, 64), 64>>>(x, sums, y, N, P)
__global__ void add_up(const int* x, long long* sums, int N, int P) {
    int part = blockIdx.x * 64 + threadIdx.x;
    if (part >= P) return;
    long long sum = 0;
    for (int i = part * 256; i < N && i < part * 256 + 256; ++i) sum += x[i];
    sums[part] = sum;
}
__global__ void offsets(long long* sums, int P) {
    __shared__ long long turn[2][1024];
    int t = threadIdx.x;
    turn[0][t] = t < P ? sums[t] : 0;
    __syncthreads();
    int now = 0;
    for (int w = 1; w < 1024; w *= 2) {
        turn[1 - now][t] = turn[now][t] + (t >= w ? turn[now][t - w] : 0);
        now = 1 - now;
        __syncthreads();
    }
    if (t < P) sums[t] = turn[now][t];
}
__global__ void spread(const int* x, const long long* sums, long long* y, int N, int P) {
    int part = blockIdx.x * 64 + threadIdx.x;
    if (part >= P) return;
    long long sum = part > 0 ? sums[part - 1] : 0;
    for (int i = part * 256; i < N && i < part * 256 + 256; ++i) y[i] = sum += x[i];
}
