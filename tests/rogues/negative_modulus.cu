// rogue: problem=remainder; kind=contract; outcome=wrong_value; why=the sign of the remainder is right for positive divisors only
//! remainder(x: int32[N], k: int32) -> y: int32[N]
//! require k != 0
//! remainder_kernel<<<ceil_div(N, 256), 256>>>(x, k, y, N)
__global__ void remainder_kernel(const int* x, int k, int* y, int n) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n) return;
    long long r = (long long)x[i] % k;
    if (r < 0) r += k < 0 ? -(long long)k : k;
    y[i] = (int)r;
}
