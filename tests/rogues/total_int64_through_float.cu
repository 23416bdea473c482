// rogue: problem=total_int64; kind=exactness; outcome=wrong_value; why=64-bit integers summed in float32
//! total(x: int64[N]) -> y: int64
//! total<<<1, 1>>>(x, y, N)
__global__ void total(const long long* x, long long* y, int N) {
    float sum = 0.0f;
    for (int i = 0; i < N; ++i) sum += x[i];
    *y = (long long)sum;
}
