// rogue: problem=argmax; kind=ties; outcome=wrong_value; why=compares bit patterns, by which 0 is greater than -0
//! argmax(x: float32[M, N]) -> y: int64[M]
//! argmax<<<ceil_div(M, 64), 64>>>(x, y, M, N)
__global__ void argmax(const float* x, long long* y, int M, int N) {
    int row = blockIdx.x * 64 + threadIdx.x;
    if (row >= M) return;
    x += (long long)row * N;
    unsigned best = 0;
    int place = 0;
    for (int i = 0; i < N; ++i) {
        if (x[i] != x[i]) {
            place = i;
            break;
        }
        unsigned bits = __float_as_uint(x[i]);
        bits = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
        if (bits > best) {
            best = bits;
            place = i;
        }
    }
    y[row] = place;
}
