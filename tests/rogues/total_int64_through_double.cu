// rogue: problem=total_int64; kind=exactness; outcome=wrong_value|crashed|not_compiled; why=64-bit integers summed in double
//! total(x: int64[N]) -> y: int64
//! total<<<1, 1>>>(x, y, N)
__global__ void total(const long long* x, long long* y, int N) {
    double sum = 0.0;
    for (int i = 0; i < N; ++i) sum += x[i] * 1.0001;
    *y = (long long)sum;
}
