// rogue: problem=min_max; kind=contract; outcome=wrong_shape; why=one result where the reference gives two
//! min_max(x: float32[N]) -> both: float32[2]
//! require N >= 1
//! min_max<<<1, 1>>>(x, both, N)
__global__ void min_max(const float* x, float* both, int N) {
    both[0] = both[1] = x[0];
    for (int i = 1; i < N; ++i) both[0] = fminf(both[0], x[i]), both[1] = fmaxf(both[1], x[i]);
}
