// survivor: why=takes 2100 for a leap year; the example ends before, and draws stay within its range: an index or a length beyond it may be none
//! year_of(days: int32[N]) -> y: int32[N]
//! year_kernel<<<ceil_div(N, 256), 256>>>(days, y, N)
__global__ void year_kernel(const int* days, int* y, int n) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n) return;
    const long long since = (long long)days[i] + 365;  // 1 January 1969: every fourth year is the last of four
    const long long fours = (since >= 0 ? since : since - 1460) / 1461;
    const int rest = (int)(since - fours * 1461);
    y[i] = (int)(1969 + fours * 4 + (rest / 365 < 3 ? rest / 365 : 3));
}
