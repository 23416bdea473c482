"""Small candidates that several tests judge."""

from __future__ import annotations

import numpy as np

AXPY = """//! axpy(a: float32, x: float32[N], y: float32[N]) -> z: float32[N]
//! axpy<<<ceil_div(N, 128), 128>>>(a, x, y, z, N)
__global__ void axpy(float a, const float* x, const float* y, float* z, int N) {
    int i = blockIdx.x * 128 + threadIdx.x;
    if (i < N) {
        z[i] = a * x[i] + y[i];
    }
}
"""

ROW_SUM = """//! row_sum(x: float32[M, N]) -> y: float32[M]
//! row_sum<<<M, 128>>>(x, y, N)
__global__ void row_sum(const float* x, float* y, int N) {
    __shared__ float part[128];
    float s = 0.0f;
    for (int i = threadIdx.x; i < N; i += 128) s += x[(long long)blockIdx.x * N + i];
    part[threadIdx.x] = s;
    __syncthreads();
    for (int k = 64; k > 0; k >>= 1) {
        if (threadIdx.x < k) part[threadIdx.x] += part[threadIdx.x + k];
        __syncthreads();
    }
    if (threadIdx.x == 0) y[blockIdx.x] = part[0];
}
"""


def axpy(a, x, y):
    return np.float32(a) * x + y if x.dtype == np.float32 else a * x + y


def row_sum(x):
    return x.sum(axis=-1)


def axpy_inputs(n=1000):
    rng = np.random.default_rng(0)
    return [2.0, rng.standard_normal(n).astype(np.float32), rng.standard_normal(n).astype(np.float32)]


def row_sum_inputs():
    return [np.random.default_rng(0).standard_normal((40, 300)).astype(np.float32)]
