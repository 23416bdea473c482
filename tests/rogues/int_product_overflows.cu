// rogue: problem=square_weights; kind=exactness; outcome=rejected; why=the square of an index does not fit into an int at the sizes of the example
//! weigh(x: float32[N]) -> y: float32[N]
//! weigh<<<ceil_div(N, 128), 128>>>(x, y, N)
__global__ void weigh(const float* x, float* y, int N) {
    int i = blockIdx.x * 128 + threadIdx.x;
    if (i < N) y[i] = x[i] * (float)(i * i);
}
