from __future__ import annotations

import json
import pickle
from dataclasses import replace

import pytest

from llmkernel.candidate.arguments import ArrayArgument, CallArgument, ScalarValue
from llmkernel.candidate.candidate import Candidate, parse_candidate
from llmkernel.devices.base import DeviceLimits
from llmkernel.devices.plan import (
    Buffer,
    LaunchPlan,
    PointerArgument,
    ScalarArgument,
    TensorMapArgument,
    plan_from_dict,
)
from llmkernel.errors import HeaderError, LaunchError, PreconditionError

H200 = DeviceLimits(
    "cuda",
    "NVIDIA H200",
    "sm_90a",
    132,
    max_shared_bytes=232448,
    max_cluster_size=16,
    supports_cooperative=True,
    supports_tma=True,
)
HOST = DeviceLimits("cpu", "host", "host", 2)
X = ArrayArgument("float32", (100, 64))


def plan(lines: str, kernel: str, *arguments: CallArgument, limits: DeviceLimits = H200) -> LaunchPlan:
    header = "".join(f"//! {line}\n" for line in lines.strip("\n").split("\n"))
    return parse_candidate(header + kernel).plan(arguments, limits)


SOFTMAX = """softmax(x: T[M, N]) -> y: T[M, N]    where T in {float32, float16}
let chunk = 8 * ceil_div(N, 64)
when N <= 1024:
    warp<T, 32><<<ceil_div(M, 8), 256>>>(x, y, M, N)
otherwise:
    cluster<T><<<8 * M, 512, 4 * chunk, cluster=(8, 1, 1)>>>(x, y, N, chunk)"""
SOFTMAX_KERNELS = """template <typename T, int LANES> __global__ void warp(const T* x, T* y, int M, long long N) {}
template <typename T> __global__ void cluster(const T* x, T* y, int N, unsigned chunk) {}"""


def test_a_plan_holds_everything_and_no_expression() -> None:
    small = plan(SOFTMAX, SOFTMAX_KERNELS, ArrayArgument("float16", (100, 1000)))
    large = plan(SOFTMAX, SOFTMAX_KERNELS, ArrayArgument("float32", (3, 4096)))

    assert small.buffers == (
        Buffer("x", "float16", (100, 1000), "input"),
        Buffer("y", "float16", (100, 1000), "output"),
    )
    assert small.results == ("y",)
    (launch,) = small.launches
    assert launch.kernel == "warp<__half, 32>"
    assert (launch.grid, launch.block, launch.shared_bytes) == ((13, 1, 1), (256, 1, 1), 0)
    assert launch.cluster is None
    assert launch.line == 4
    assert launch.arguments == (
        PointerArgument("x"),
        PointerArgument("y"),
        ScalarArgument("int32", 100),
        ScalarArgument("int64", 1000),
    )
    (launch,) = large.launches
    assert launch.kernel == "cluster<float>"
    assert (launch.grid, launch.shared_bytes, launch.cluster) == ((24, 1, 1), 2048, (8, 1, 1))
    assert launch.arguments[3] == ScalarArgument("uint32", 512)
    for each in (small, large):
        assert plan_from_dict(json.loads(json.dumps(each.to_dict()))) == each


def test_repeat_and_swap_decide_what_is_returned() -> None:
    lines = """stencil(x: float32[N], steps: int32) -> y: float32[N]
scratch other: float32[N]
copy<<<1, 1>>>(x, y)
repeat steps:
    step<<<1, 1>>>(y, other, repeat_index)
    swap(y, other)"""
    kernels = "__global__ void copy(const float* a, float* b) {}\n__global__ void step(const float* a, float* b, int i) {}"
    even = plan(lines, kernels, ArrayArgument("float32", (8,)), ScalarValue(2))
    odd = plan(lines, kernels, ArrayArgument("float32", (8,)), ScalarValue(3))
    none = plan(lines, kernels, ArrayArgument("float32", (8,)), ScalarValue(0))

    assert (even.results, odd.results, none.results) == (("y",), ("other",), ("y",))
    assert [launch.arguments for launch in even.launches[1:]] == [
        (PointerArgument("y"), PointerArgument("other"), ScalarArgument("int32", 0)),
        (PointerArgument("other"), PointerArgument("y"), ScalarArgument("int32", 1)),
    ]
    assert len(none.launches) == 1
    assert [b.role for b in odd.buffers] == ["input", "output", "scratch"]


def test_nested_repeats_count_each_for_itself() -> None:
    found = plan(
        """f(inout x: float32[N])
repeat 2:
    repeat 2:
        k<<<1, 1>>>(x, repeat_index)
    k<<<1, 1>>>(x, 10 + repeat_index)""",
        "__global__ void k(float* x, int i) {}",
        ArrayArgument("float32", (1,)),
    )

    values = [a.value for launch in found.launches for a in launch.arguments if isinstance(a, ScalarArgument)]
    assert values == [0, 1, 10, 0, 1, 11]
    assert found.results == ()
    assert found.buffers[0].role == "inout"


def test_arguments_of_every_kind() -> None:
    found = plan(
        "f(x: float32[M, N], s: strided float16[M], k: int64, e: float16, c: complex64, b: bool, p: float32[])"
        " -> (y: float32[M] = 0, n: int64)\n"
        "scratch part: float32[num_sms, M] = 0\n"
        "k<(k > 2), -1, 5000000000><<<(M, 2), (32, 4, 2), shared=64, cooperative>>>("
        "x + N, s, s.stride(0), k, e, c, b, p, y, n, part, 0.5, N == 64, sizeof(float16))",
        "template <bool B, int I, long long L> __global__ void k(const float* x, const __half* s, long long ss,"
        " int k, __half e, float2 c, bool b, const float* p, float* y, long long* n, float* part, float half,"
        " bool q, unsigned char z) {}",
        X,
        ArrayArgument("float16", (100,), (3,)),
        ScalarValue(7),
        ScalarValue(1.5),
        ScalarValue(1 + 2j),
        ScalarValue(value=True),
        ArrayArgument("float32", ()),
    )

    (launch,) = found.launches
    assert launch.kernel == "k<true, -1, 5000000000LL>"
    assert (launch.grid, launch.block) == ((100, 2, 1), (32, 4, 2))
    assert launch.is_cooperative
    assert launch.arguments == (
        PointerArgument("x", 64),
        PointerArgument("s"),
        ScalarArgument("int64", 3),
        ScalarArgument("int32", 7),
        ScalarArgument("float16", 1.5),
        ScalarArgument("complex64", 1 + 2j),
        ScalarArgument("bool", value=True),
        PointerArgument("p"),
        PointerArgument("y"),
        PointerArgument("n"),
        PointerArgument("part"),
        ScalarArgument("float32", 0.5),
        ScalarArgument("bool", value=True),
        ScalarArgument("uint8", 2),
    )
    assert found.buffer("s").strides == (3,)
    assert found.buffer("x").strides is None
    assert found.buffer("y").is_zeroed
    assert found.buffer("n") == Buffer("n", "int64", (), "output")
    assert found.buffer("part").shape == (132, 100)
    assert found.results == ("y", "n")


def test_empty_grids_are_left_out_and_empty_arrays_allowed() -> None:
    found = plan(
        """f(x: float32[N]) -> y: float32[N]
k<<<ceil_div(N, 256), 256>>>(x, y, tensor_map(x, box=64))""",
        "__global__ void k(const float* x, float* y, const __grid_constant__ CUtensorMap m) {}",
        ArrayArgument("float32", (0,)),
    )

    assert found.launches == ()
    assert found.buffer("y").shape == (0,)


ALIGNED = """f(x: float32[N]) -> y: float32[N]
when N % 4 == 0 and aligned(x, 16):
    wide<<<1, 1>>>(x, y)
otherwise:
    narrow<<<1, 1>>>(x, y)"""
ALIGNED_KERNELS = (
    "__global__ void wide(const float4* x, float4* y) {} __global__ void narrow(const float* x, float* y) {}"
)


@pytest.mark.parametrize(
    ("address", "size", "kernel"), [(0, 64, "wide"), (4, 64, "narrow"), (16, 64, "wide"), (16, 63, "narrow")]
)
def test_an_offset_view_takes_the_unaligned_branch(address: int, size: int, kernel: str) -> None:
    found = plan(ALIGNED, ALIGNED_KERNELS, ArrayArgument("float32", (size,), None, address))

    assert found.kernels() == (kernel,)


TMA = """f(x: T[M, N]) -> y: float32[M] where T in {float32, float16, complex64}
when tma_ok(x):
    tma<<<1, 1>>>(tensor_map(x, box=(8, 16)), y)
otherwise:
    plain<T><<<1, 1>>>(x, y)"""
TMA_KERNELS = (
    "__global__ void tma(const __grid_constant__ CUtensorMap m, float* y) {}\n"
    "template <typename T> __global__ void plain(const T* x, float* y) {}"
)


@pytest.mark.parametrize(
    ("array", "kernel"),
    [
        (ArrayArgument("float32", (8, 64)), "tma"),
        (ArrayArgument("float32", (8, 63)), "plain<float>"),
        (ArrayArgument("float16", (8, 64)), "tma"),
        (ArrayArgument("float16", (8, 12)), "plain<__half>"),
        (ArrayArgument("float32", (8, 64), None, 8), "plain<float>"),
        (ArrayArgument("float32", (0, 64)), "plain<float>"),
        (ArrayArgument("complex64", (8, 64)), "plain<float2>"),
    ],
)
def test_tma_is_taken_where_the_driver_would_encode_it(array: ArrayArgument, kernel: str) -> None:
    found = plan(TMA, TMA_KERNELS, array)

    assert found.kernels() == (kernel,)
    if kernel == "tma":
        assert found.launches[0].arguments[0] == TensorMapArgument("x", (8, 16), 0)


@pytest.mark.parametrize(
    ("shape", "strides", "is_ok"),
    [
        ((4, 8), (8, 1), True),
        ((4, 8), (16, 1), True),
        ((4, 8), (9, 1), False),
        ((4, 8), (1, 4), False),
        ((4, 8), (-8, 1), False),
        ((2, 4, 8), (64, 8, 1), True),
    ],
)
def test_tma_follows_the_strides_of_a_view(
    shape: tuple[int, ...], strides: tuple[int, ...], is_ok: bool
) -> None:
    dims = ", ".join(f"D{i}" for i in range(len(shape)))
    found = plan(
        f"f(x: strided float32[{dims}]) -> y: float32[1]\nk<<<1, 1>>>(tma_ok(x))",
        "__global__ void k(bool ok) {}",
        ArrayArgument("float32", shape, strides),
    )

    assert found.launches[0].arguments == (ScalarArgument("bool", is_ok),)


def launch(config: str, arguments: str = "", parameters: str = "") -> tuple[str, str]:
    return f"f(x: float32[M, N]) -> y: float32[M]\n{{}}<<<{config}>>>({arguments})".format("k"), (
        f"__global__ void k({parameters}) {{}}"
    )


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ("(2, 2, 93288), 1", "grid.z of `k` is 93288, the limit is 65535"),
        ("(1, 70000), 1", "grid.y of `k` is 70000, the limit is 65535"),
        ("M * N * 1000000000, 1", "grid.x of `k` is 6400000000000, the limit is 2147483647"),
        ("1, 2048", "block.x of `k` is 2048, the limit is 1024"),
        ("1, (1, 1, 65)", "block.z of `k` is 65, the limit is 64"),
        ("1, 0", "block.x of `k` is 0"),
        ("1, (64, 32)", "A block of `k` has 2048 threads, the limit is 1024"),
        ("1, 32, 232448 + 256", "asks for 232704 bytes of shared memory, the limit is 232448"),
        ("1, 32, -4", "asks for -4 bytes"),
        ("N - M, 1", "grid.x of `k` is negative"),
        ("32, 32, cluster=32", "A cluster of `k` has 32 blocks, the limit is 16"),
        ("12, 32, cluster=8", "grid.x of `k` is 12, no multiple of cluster.x = 8"),
    ],
)
def test_limits_are_checked_with_both_numbers(config: str, words: str) -> None:
    with pytest.raises(LaunchError) as caught:
        plan(*launch(config), X)

    assert words in caught.value.what
    assert caught.value.line == 2
    assert "line 2" in str(caught.value)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ("1, 32, cooperative", "cooperative"),
        ("2, 32, cluster=2", "A cluster of `k` has 2 blocks, the limit is 1"),
        ("1, 32, 49153", "the limit is 49152"),
    ],
)
def test_what_a_smaller_device_lacks(config: str, words: str) -> None:
    with pytest.raises(LaunchError, match=words):
        plan(*launch(config), X, limits=HOST)


def test_launch_bounds_hold() -> None:
    lines, _ = launch("1, 512")

    with pytest.raises(LaunchError, match=r"512 threads, its __launch_bounds__ says 256"):
        plan(lines, "__global__ void __launch_bounds__(256) k() {}", X)


@pytest.mark.parametrize(
    ("argument", "parameter", "words"),
    [
        ("M * N * 1000000", "int n", "`M * N * 1000000` = 6400000000 does not fit the parameter `n` of `k`"),
        ("N - M", "unsigned n", "= -36 does not fit"),
        ("M", "bool n", "= 100 does not fit"),
        ("16777217", "float n", "= 16777217 does not fit"),
        ("x + 6401", "const float* n", "lies outside `x`"),
        ("x + -1", "const float* n", "lies outside `x`"),
        ("tensor_map(x, box=(257, 8))", "const __grid_constant__ CUtensorMap m", "257 elements on axis 0"),
        ("tensor_map(x, box=(8, 2))", "const __grid_constant__ CUtensorMap m", "has 8 bytes"),
        (
            "tensor_map(x, box=(8, 64), swizzle=128)",
            "const __grid_constant__ CUtensorMap m",
            "swizzle=128 takes at most 128",
        ),
    ],
)
def test_values_that_do_not_fit_a_parameter(argument: str, parameter: str, words: str) -> None:
    with pytest.raises(LaunchError) as caught:
        plan(*launch("1, 1", argument, parameter), X)

    assert words in caught.value.what
    assert caught.value.line == 2


def test_an_offset_may_point_at_the_end() -> None:
    found = plan(*launch("1, 1", "x + M * N", "const float* n"), X)

    assert found.launches[0].arguments == (PointerArgument("x", 6400),)


def test_a_device_without_tma_takes_the_portable_branch() -> None:
    array = ArrayArgument("float32", (8, 64))

    assert plan(TMA, TMA_KERNELS, array, limits=HOST).kernels() == ("plain<float>",)
    scratch = "f(x: float32[N]) -> y: float32[N]\nscratch s: float32[N]\nk<<<1, 1>>>(tma_ok(s))"
    for limits, is_ok in ((H200, True), (HOST, False)):
        found = plan(scratch, "__global__ void k(bool ok) {}", ArrayArgument("float32", (8,)), limits=limits)
        assert found.launches[0].arguments == (ScalarArgument("bool", is_ok),)


def test_tensor_maps_need_a_device_that_has_them() -> None:
    lines, kernel = launch("1, 1", "tensor_map(x, box=(8, 8))", "const __grid_constant__ CUtensorMap m")

    with pytest.raises(LaunchError, match="has no TMA"):
        plan(lines, kernel, X, limits=replace(H200, name="NVIDIA A100", supports_tma=False))


def test_an_overflow_names_the_line_and_the_values() -> None:
    with pytest.raises(HeaderError) as caught:
        plan(*launch("M * 4611686018427387904 // M, 1"), X)

    assert caught.value.line == 2
    assert caught.value.column == 9
    assert "M = 100" in str(caught.value)


def test_preconditions_of_the_device_and_of_branches() -> None:
    lines = "f(x: float32[N]) -> y: float32[N]\nrequire num_sms >= 4\nwhen N > 3:\n    require N % 2 == 0\nk<<<1, 1>>>()"
    kernel = "__global__ void k() {}"

    with pytest.raises(PreconditionError, match="num_sms"):
        plan(lines, kernel, ArrayArgument("float32", (4,)), limits=HOST)
    with pytest.raises(PreconditionError, match="N % 2"):
        plan(lines, kernel, ArrayArgument("float32", (5,)))
    assert plan(lines, kernel, ArrayArgument("float32", (3,))).kernels() == ("k",)


@pytest.mark.parametrize(
    ("count", "words"), [("-1", "negative number of times"), ("100001", "at most 100000 repetitions")]
)
def test_repeats_have_bounds(count: str, words: str) -> None:
    lines = f"f(x: float32[M, N]) -> y: float32[M]\nlet a = 1\nrepeat {count}:\n    let b = 1\nk<<<1, 1>>>()"

    with pytest.raises(LaunchError, match=words) as caught:
        plan(lines, "__global__ void k() {}", X)
    assert caught.value.line == 3


def test_what_a_cache_of_plans_needs_to_know() -> None:
    def facts(lines: str, kernels: str) -> frozenset[str]:
        return parse_candidate("".join(f"//! {x}\n" for x in lines.split("\n")) + kernels).facts_needed

    assert facts(ALIGNED, ALIGNED_KERNELS) == {"x"}
    assert facts(TMA, TMA_KERNELS) == {"x"}
    assert facts(SOFTMAX, SOFTMAX_KERNELS) == frozenset()
    outputs = "f(x: float32[N]) -> y: float32[N]\nwhen aligned(y, 16): k<<<1, 1>>>()"
    assert facts(outputs, "__global__ void k() {}") == frozenset()


def test_outputs_and_scratch_are_aligned_to_256_bytes() -> None:
    found = plan(
        """f(x: float32[N]) -> y: float32[N]
scratch s: float32[N]
k<<<1, 1>>>(aligned(y, 256), aligned(s, 256), aligned(y, 512))""",
        "__global__ void k(bool a, bool b, bool c) {}",
        ArrayArgument("float32", (4,), None, 4),
    )

    assert [a.value for a in found.launches[0].arguments if isinstance(a, ScalarArgument)] == [
        True,
        True,
        False,
    ]


def test_scratch_of_a_branch_is_there_only_when_it_is_taken() -> None:
    lines = """f(x: float32[N]) -> y: float32[N]
when N > 4:
    scratch s: float32[N]
    k<<<1, 1>>>(s)
otherwise:
    k<<<1, 1>>>(y)"""
    kernel = "__global__ void k(float* s) {}"

    assert len(plan(lines, kernel, ArrayArgument("float32", (8,))).buffers) == 3
    assert len(plan(lines, kernel, ArrayArgument("float32", (2,))).buffers) == 2


def test_candidates_survive_pickle_and_tell_their_header() -> None:
    header = "  //! f(x: float32[N]) -> y: float32[N]\n//! k<<<N, 1>>>(x)  # rows\n"
    found = parse_candidate(f"#include <x>\n{header}__global__ void k(const float* x) {{}}\n")
    again: Candidate = pickle.loads(pickle.dumps(found))

    assert found.header_text == header
    assert again == found
    array = ArrayArgument("float32", (8,))
    assert again.plan([array], H200) == found.plan([array], H200)
