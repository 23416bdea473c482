"""Whatever the arguments are: a plan that keeps every promise, or one of this package's errors."""

from __future__ import annotations

import json

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from llmkernel.candidate.arguments import ArrayArgument, CallArgument, ScalarValue
from llmkernel.candidate.candidate import parse_candidate
from llmkernel.devices.base import DeviceLimits
from llmkernel.devices.plan import PointerArgument, ScalarArgument, TensorMapArgument, plan_from_dict
from llmkernel.errors import LLMKernelError
from llmkernel.problem.dtypes import DTYPES

CANDIDATE = parse_candidate("""
//! f(x: T[M, N], v: strided float32[2 * N], inout z: float32[M], k: int32, e: T, b: bool, c: complex64)
//!   -> (y: T[M, k] = 0, n: int64)
//!   where T in {float32, float16, int8}
//! require M != 13
//! let chunk = ceil_div(M * N, k)
//! scratch part: T[M, k], sums: float64[chunk] = 0
//! when tma_ok(x) and aligned(v, 16):
//!     tma<<<(ceil_div(N, 64), M), 128, sizeof(T) * 4096>>>(tensor_map(x, box=(1, 64)), y)
//! when N % 4 == 0 or b:
//!     repeat min(k, 3):
//!         wide<T, (k > 1)><<<M, (32, k)>>>(x + N // 2, part, v, v.stride(0), chunk, c)
//!         swap(part, y)
//! otherwise:
//!     plain<T><<<chunk - 1, 64, cluster=2>>>(y, z, sums, e, n, M * N, k - 5)
template <typename T, bool Many>
__global__ void wide(const T* x, T* part, const float* v, long long stride, int chunk, float2 c) {}
template <typename T>
__global__ void plain(T* y, float* z, double* sums, T e, long long* n, unsigned count, short less) {}
__global__ void tma(const __grid_constant__ CUtensorMap x, void* y) {}
""")
LIMITS = DeviceLimits(
    "cuda", "a GPU", "sm_90a", 4, max_shared_bytes=65536, max_cluster_size=8, supports_tma=True
)

_sizes = st.one_of(st.integers(0, 70), st.sampled_from((2**16, 2**31, 2**40)))
_shapes = st.lists(_sizes, max_size=3).map(tuple)


@st.composite
def arrays(draw: st.DrawFn, dtypes: tuple[str, ...]) -> ArrayArgument:
    shape = draw(_shapes)
    strides = draw(
        st.one_of(st.none(), st.lists(st.integers(-8, 80), min_size=len(shape), max_size=len(shape)))
    )
    return ArrayArgument(
        draw(st.sampled_from(dtypes)), shape, strides and tuple(strides), draw(st.integers(0, 4095))
    )


_scalars = st.one_of(
    st.integers(-5, 70), st.integers(), st.booleans(), st.floats(), st.complex_numbers()
).map(ScalarValue)


@st.composite
def fitting(draw: st.DrawFn) -> list[CallArgument]:
    """Arguments that mostly bind, so that plans are reached."""
    dtype = draw(st.sampled_from(("float32", "float16", "int8")))
    m, n = draw(_sizes), draw(_sizes)
    value = draw(st.integers(-128, 127)) if dtype == "int8" else draw(st.floats(width=16))
    return [
        ArrayArgument(dtype, (m, n), None, draw(st.sampled_from((0, 4, 16)))),
        ArrayArgument("float32", (2 * n,), (draw(st.integers(-3, 3)),), draw(st.sampled_from((0, 4, 16)))),
        ArrayArgument("float32", (m,)),
        ScalarValue(draw(st.integers(-2, 40))),
        ScalarValue(value),
        ScalarValue(draw(st.booleans())),
        ScalarValue(draw(st.complex_numbers(max_magnitude=1e6))),
    ]


_anything = st.lists(st.one_of(arrays(tuple(DTYPES)), _scalars), min_size=6, max_size=8)


@settings(max_examples=300, deadline=None)
@given(arguments=st.one_of(fitting(), _anything))
def test_a_plan_keeps_its_promises(arguments: list[CallArgument]) -> None:
    try:
        plan = CANDIDATE.plan(arguments, LIMITS)
    except LLMKernelError as error:
        assert error.rule  # noqa: PT017 - every error says the rule
        return

    assert plan_from_dict(json.loads(json.dumps(plan.to_dict()))).to_dict() == plan.to_dict()
    names = {b.name for b in plan.buffers}
    assert len(names) == len(plan.buffers) == 7
    assert set(plan.results) <= names
    assert [b.role for b in plan.buffers] == [
        "input",
        "input",
        "inout",
        "output",
        "output",
        "scratch",
        "scratch",
    ]
    for launch in plan.launches:
        assert all(1 <= n <= limit for n, limit in zip(launch.grid, LIMITS.max_grid, strict=True))
        assert 1 <= np.prod(launch.block) <= LIMITS.max_threads_per_block
        assert 0 <= launch.shared_bytes <= LIMITS.max_shared_bytes
        assert launch.cluster is None or launch.grid[0] % launch.cluster[0] == 0
        for argument in launch.arguments:
            if isinstance(argument, ScalarArgument) and isinstance(argument.value, int):
                assert int(np.asarray(argument.value).astype(DTYPES[argument.dtype].numpy)) == argument.value
            elif isinstance(argument, PointerArgument):
                assert argument.buffer in names
                assert argument.offset >= 0
            elif isinstance(argument, TensorMapArgument):
                assert plan.buffer(argument.buffer).shape[1] > 0


def test_the_property_reaches_every_branch() -> None:
    def kernels(m: int, n: int, k: int, address: int) -> tuple[str, ...]:
        arguments = [
            ArrayArgument("float32", (m, n), None, address),
            ArrayArgument("float32", (2 * n,)),
            ArrayArgument("float32", (m,)),
            *(ScalarValue(v) for v in (k, 1.0, False, 0j)),
        ]
        return CANDIDATE.plan(arguments, LIMITS).kernels()

    assert kernels(4, 64, 2, 0) == ("tma",)
    assert kernels(4, 64, 2, 4) == ("wide<float, true>",)
    assert kernels(4, 64, 1, 4) == ("wide<float, false>",)
    assert kernels(3, 5, 5, 4) == ("plain<float>",)
