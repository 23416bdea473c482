// rogue: problem=search; kind=ties; outcome=wrong_value; why=from an equal element goes back by no more than eight
//! search(a: float32[N], v: float32[M]) -> y: int64[M]
//! search<<<ceil_div(M, 64), 64>>>(a, v, y, N, M)
__device__ bool before(float p, float q) { return p < q || (p == p && q != q); }
__global__ void search(const float* a, const float* v, long long* y, int N, int M) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i >= M) return;
    int low = 0, high = N;
    while (low < high) {
        int middle = (low + high) / 2;
        if (a[middle] == v[i]) {
            low = middle;
            for (int s = 0; s < 8 && low > 0 && a[low - 1] == v[i]; ++s) --low;
            break;
        }
        if (before(a[middle], v[i])) low = middle + 1;
        else high = middle;
    }
    y[i] = low;
}
