// rogue: problem=inverse_root; kind=precision; outcome=non_finite|wrong_value; why=the first guess of a Newton iteration in double is a float
//! inverse_root(x: float64[N]) -> y: float64[N]
//! inverse_root_kernel<<<ceil_div(N, 256), 256>>>(x, y, N)
__global__ void inverse_root_kernel(const double* x, double* y, int n) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n) return;
    const double v = fabs(x[i]);
    if (v == 0.0 || isinf(v)) {
        y[i] = v == 0.0 ? INFINITY : 0.0;
        return;
    }
    double r = 1.0f / sqrtf((float)v);
    r = r * (1.5 - 0.5 * v * r * r);
    r = r * (1.5 - 0.5 * v * r * r);
    y[i] = r;
}
