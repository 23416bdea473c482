// honest: problem=row_sum; kind=warp; why=cooperative groups
//! row_sum(x: float32[M, N]) -> y: float32[M]
//! row_sum<<<M, 32>>>(x, y, N)
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
__global__ void row_sum(const float* x, float* y, int N) {
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    float sum = 0.0f;
    for (int i = warp.thread_rank(); i < N; i += 32) sum += x[(long long)blockIdx.x * N + i];
    sum = cg::reduce(warp, sum, cg::plus<float>());
    if (warp.thread_rank() == 0) y[blockIdx.x] = sum;
}
