// honest: problem=search; kind=ties; why=trusts that what it searches in is in order, NaN last
//! search(a: float32[N], v: float32[M]) -> y: int64[M]
//! search<<<ceil_div(M, 64), 64>>>(a, v, y, N, M)
__device__ bool before(float p, float q) { return p < q || (p == p && q != q); }
__global__ void search(const float* a, const float* v, long long* y, int N, int M) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i >= M) return;
    int low = 0, high = N;
    while (low < high) {
        int middle = (low + high) / 2;
        if (before(a[middle], v[i])) low = middle + 1;
        else high = middle;
    }
    y[i] = low;
}
