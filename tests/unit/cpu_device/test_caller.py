"""Accepted kernels as callables on host arrays, and timing."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

from llmkernel.candidate.candidate import parse_candidate
from llmkernel.candidate.domain import Kind, VerifiedArgument, VerifiedDomain
from llmkernel.errors import BindingError, LaunchError

from .support import DEVICE, make_plan

SCALE = """
//! scale(x: T[N], alpha: float32) -> y: T[N]    where T in {float32, float64, float16, bfloat16, int64}
//! scale_kernel<T><<<ceil_div(N, 128), 128>>>(x, y, alpha, N)
#include <cuda_fp16.h>
#include <cuda_bf16.h>
template <typename T> __global__ void scale_kernel(const T* x, T* y, float alpha, long long n) {
  long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = (T)((float)x[i] * alpha);
}
"""
STRIDED = """
//! transpose_sum(x: strided float32[M, N]) -> (y: float32[N, M], total: float64 = 0)
//! copy<<<M, 32>>>(x, y, total, M, N, x.stride(0), x.stride(1))
__global__ void copy(const float* x, float* y, double* total, int m, int n, long long s0, long long s1) {
  for (int j = threadIdx.x; j < n; j += 32) {
    y[j * m + blockIdx.x] = x[blockIdx.x * s0 + j * s1];
    atomicAdd(total, (double)x[blockIdx.x * s0 + j * s1]);
  }
}
"""
INPLACE = """
//! double_it(inout x: float32[N])
//! twice<<<ceil_div(N, 64), 64>>>(x, N)
__global__ void twice(float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= 2;
}
"""


def caller(
    source: str, *arguments: tuple[str, Kind, str, int], kind: Kind = "numpy", is_tuple: bool = False
) -> Any:
    verified = tuple(VerifiedArgument(*a) for a in arguments)
    return DEVICE.caller(parse_candidate(source), VerifiedDomain(verified, kind, False, is_tuple, "cpu"))


def scale(kind: Kind = "numpy", dtype: str = "float32") -> Any:
    return caller(SCALE, ("x", kind, dtype, 1), ("alpha", "scalar", "float32", 0), kind=kind)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int64"])
def test_numpy_arrays(dtype: str) -> None:
    numpy = np.dtype(ml_dtypes.bfloat16) if dtype == "bfloat16" else np.dtype(dtype)
    x = np.arange(300).astype(numpy)
    x.flags.writeable = False
    y = scale(dtype=dtype)(x, np.float32(2))
    assert type(y) is np.ndarray
    assert y.dtype == numpy
    assert (y == x + x).all()


def test_the_reference_may_call_its_arguments_otherwise_than_the_header() -> None:
    kernel = caller(SCALE, ("values", "numpy", "float32", 1), ("x", "scalar", "float32", 0))
    values = np.arange(1, 50, dtype=np.float32)
    np.testing.assert_array_equal(kernel(values, 3.0), 3 * values)
    twice = caller(INPLACE, ("y", "numpy", "float32", 1))
    twice(values)
    np.testing.assert_array_equal(values, np.arange(2, 100, 2, dtype=np.float32))


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int64"])
def test_torch_tensors(dtype: str) -> None:
    x = torch.arange(200).to(getattr(torch, dtype))
    y = scale("torch", dtype)(x, 2.0)
    assert y.dtype == x.dtype
    assert torch.equal(y, x * 2)
    assert torch.equal(scale("torch", dtype)(x[:0], 2.0), x[:0])


def test_empty_arrays_need_no_launch() -> None:
    assert scale()(np.zeros(0, np.float32), 1.0).shape == (0,)
    transpose_sum = caller(STRIDED, ("x", "numpy", "float32", 2), is_tuple=True)
    y, total = transpose_sum(np.zeros((0, 3), np.float32))
    assert y.shape == (3, 0)
    assert total.shape == ()
    assert total == 0


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_strided_views_are_taken_as_they_are(kind: Kind) -> None:
    transpose_sum = caller(STRIDED, ("x", kind, "float32", 2), kind=kind, is_tuple=True)
    base = np.arange(5 * 14, dtype=np.float32).reshape(5, 14)
    array: Any = base if kind == "numpy" else torch.from_numpy(base)
    for view in (array, array.T, array[1:4, 2:11:3], array[:, 1:]):
        y, total = transpose_sum(view)
        assert (y == view.T).all()
        assert float(total) == float(view.sum())


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_inout_arrays_change_in_place(kind: Kind) -> None:
    double_it = caller(INPLACE, ("x", kind, "float32", 1), kind=kind)
    x: Any = np.ones(100, np.float32) if kind == "numpy" else torch.ones(100)
    part = x[10:20]
    version = x._version if kind == "torch" else 0
    assert double_it(part) is None
    assert (x[:10] == 1).all()
    assert (part == 2).all()
    assert (x[20:] == 1).all()
    if kind == "torch":
        assert x._version > version


def test_read_only_inout_arrays_are_refused() -> None:
    x = np.ones(4, np.float32)
    x.flags.writeable = False
    with pytest.raises(BindingError) as caught:
        caller(INPLACE, ("x", "numpy", "float32", 1))(x)
    assert caught.value.reason == "value"
    assert (x == 1).all()


@pytest.mark.parametrize(
    ("kind", "arguments", "reason"),
    [
        ("numpy", (np.ones(3, np.float32),), "count"),
        ("numpy", (np.ones(3, np.float64), 1.0), "dtype"),
        ("numpy", (np.ones((3, 3), np.float32), 1.0), "rank"),
        ("numpy", (np.ones(6, np.float32)[::2], 1.0), "layout"),
        ("numpy", (np.ones(6, np.float32)[::-1], 1.0), "layout"),
        ("numpy", ([1.0, 2.0], 1.0), "kind"),
        ("numpy", (torch.ones(3), 1.0), "kind"),
        ("numpy", (np.ones(3, np.float32), "2"), "kind"),
        ("numpy", (np.ones(3, np.float32), 1e300), "value"),
        ("torch", (torch.ones(3, requires_grad=True), 1.0), "grad"),
        ("torch", (torch.ones(3, device="meta"), 1.0), "device"),
        ("torch", (torch.ones(6)[::2], 1.0), "layout"),
        ("torch", (torch.ones(3).to_sparse(), 1.0), "layout"),
        ("torch", (np.ones(3, np.float32), 1.0), "kind"),
    ],
)
def test_arguments_that_were_not_verified_are_refused(
    kind: Kind, arguments: tuple[Any, ...], reason: str
) -> None:
    with pytest.raises(BindingError) as caught:
        scale(kind)(*arguments)
    assert caught.value.reason == reason


def test_gradients_are_only_refused_where_they_are_recorded() -> None:
    x = torch.ones(3, requires_grad=True)
    with torch.no_grad():
        assert torch.equal(scale("torch")(x, 2.0), torch.full((3,), 2.0))


def test_a_fault_in_a_call_is_an_error() -> None:
    source = """
//! crash(x: float32[N]) -> y: float32[N]
//! crash_kernel<<<1, 1>>>(x, y)
__global__ void crash_kernel(const float* x, float* y) { y[1 << 20] = x[0]; }
"""
    with pytest.raises(LaunchError) as caught:
        caller(source, ("x", "numpy", "float32", 1))(np.ones(4, np.float32))
    assert caught.value.line == 3
    assert "1048576" in str(caught.value)


def test_samples_take_a_draw_each_and_hand_over_outputs() -> None:
    source = "__global__ void k(const float* x, float* y) { y[threadIdx.x] += x[threadIdx.x]; }"
    draws = [np.full(32, value, np.float32) for value in (1, 2, 3)]
    plan, _ = make_plan("k", 1, 32, (draws[0], draws[0]))
    module = DEVICE.compile(source, ["k"])
    payloads = [{"a0": d.view(np.uint8), "a1": (d * 10).view(np.uint8)} for d in draws]
    sampler = DEVICE.sampler(module, plan, payloads)
    assert DEVICE.is_emulation
    for count in (1, 7):
        samples = sampler.sample(count)
        assert len(samples) == count
        assert min(samples) > 0
        outputs = sampler.outputs()
        assert len(outputs) == min(3, count)
        for draw, results in outputs:
            assert (results["a1"].view(np.float32) == 11 * draws[draw][0]).all()
    sampler.close()


def test_a_fault_while_timing_is_an_error() -> None:
    module = DEVICE.compile("__global__ void k(float* x) { __trap(); }", ["k"])
    plan, arrays = make_plan("k", 1, 1, (np.zeros(4, np.float32),))
    sampler = DEVICE.sampler(module, plan, [{"a0": arrays["a0"].view(np.uint8)}])
    with pytest.raises(LaunchError, match="trap"):
        sampler.sample(2)
