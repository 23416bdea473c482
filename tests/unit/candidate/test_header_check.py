"""A header that does not fit its kernels is refused before anything is compiled."""

from __future__ import annotations

import pytest

from llmkernel.candidate.candidate import parse_candidate
from llmkernel.candidate.cxx_types import accepts_pointer, canonical, dtype_of
from llmkernel.errors import HeaderError
from llmkernel.problem.dtypes import DTYPES

HEADER = (
    "//! f(x: T[M, N], w: float32[N], k: int32, eps: float32, a: T, h: float16, c: complex64, flag: bool)"
    " -> y: T[M, N] where T in {float32, float16}\n"
)


def candidate(launch: str, kernel: str) -> str:
    return f"{HEADER}//! {launch}\n{kernel}"


def parameters(argument: str, parameter: str) -> str:
    return candidate(
        f"k<T><<<1, 1>>>({argument})", f"template <typename T> __global__ void k({parameter}) {{}}"
    )


@pytest.mark.parametrize(
    ("argument", "parameter"),
    [
        ("x", "const T* x"),
        ("x + N", "const T* __restrict__ x"),
        ("y", "T* y"),
        ("y", "const T* y"),
        ("y", "void* y"),
        ("x", "const void* x"),
        ("x", "const unsigned char* x"),
        ("x", "const uint4* x"),
        ("x", "const int4* x"),
        ("w", "const float* w"),
        ("w", "const float4* w"),
        ("w", "const float2* w"),
        ("w", "const unsigned* w"),
        ("w", "float const w[]"),
        ("w", "const typename Traits<T>::vec* w"),
        ("k", "int k"),
        ("k", "long long k"),
        ("k", "const unsigned k"),
        ("k", "float k"),
        ("k", "std::int64_t k"),
        ("M * N", "long long n"),
        ("M * N", "size_t n"),
        ("N > 3", "bool b"),
        ("flag", "bool b"),
        ("flag", "int b"),
        ("eps", "float e"),
        ("eps", "double e"),
        ("1.5", "float e"),
        ("h", "__half e"),
        ("h", "half e"),
        ("h", "float e"),
        ("a", "T a"),
        ("a", "float a"),
        ("c", "float2 c"),
        ("c", "cuFloatComplex c"),
        ("c", "double2 c"),
        ("tensor_map(x, box=(64, 64))", "const __grid_constant__ CUtensorMap m"),
        ("tensor_map(x, box=(64, 64))", "const __grid_constant__ llmkernel::TensorMap m"),
    ],
)
def test_what_fits(argument: str, parameter: str) -> None:
    assert parse_candidate(parameters(argument, parameter)).kernels[0].name == "k"


@pytest.mark.parametrize(
    ("argument", "parameter", "words"),
    [
        ("x", "T* x", "`x` is an input, but parameter `x` of `k` may write to it"),
        ("w", "float* out", "`w` is an input, but parameter `out` of `k` may write to it"),
        ("w", "const double* w", "`w` is a float32 array, but parameter `w` of `k` points at `double`"),
        ("w", "const int* w", "points at `int`"),
        ("w", "const half2* w", "points at `half2`"),
        ("x", "const float* x", "`x` is a float16 array"),
        ("x", "const float4* x", "or `uint4*` for raw bytes"),
        ("w", "const Pair* w", "points at `Pair`"),
        ("w", "const float** w", "is `const float**`"),
        ("w", "float w", "`w` is an array"),
        ("w", "const __grid_constant__ CUtensorMap m", "tensor_map(w"),
        ("k", "const int* k", "is a pointer"),
        ("k", "Pair k", "type `Pair`, which a launch cannot pass"),
        ("k", "dim3 k", "cannot pass"),
        ("k", "const int& k", "is a reference"),
        ("k", "float2 k", "is an int32 scalar"),
        ("eps", "int e", "is a float32 scalar, but parameter `e` of `k` is `int`"),
        ("eps", "__half e", "is a float32 scalar"),
        ("eps", "__nv_bfloat16 e", "is a float32 scalar"),
        ("h", "__nv_bfloat16 e", "is a float16 scalar"),
        ("c", "float c", "is a complex64 scalar"),
        ("1.5", "int e", "floating-point number"),
        ("N + 1", "float2 e", "integer expression"),
        ("N + 1", "const __grid_constant__ CUtensorMap e", "is a tensor map"),
        ("tensor_map(x, box=(64, 64))", "CUtensorMap m", "not a grid constant"),
        ("tensor_map(x, box=(64, 64))", "const T* m", "`const __grid_constant__ CUtensorMap`"),
        ("x, y", "const T* x", "takes 1 arguments, the launch gives 2"),
        ("", "const T* x", "takes 1 arguments, the launch gives 0"),
    ],
)
def test_what_does_not_fit(argument: str, parameter: str, words: str) -> None:
    with pytest.raises(HeaderError) as caught:
        parse_candidate(parameters(argument, parameter))

    error = caught.value
    assert words in str(error)
    assert error.line == 2
    assert error.column == (5 if "the launch gives" in words else 20)
    assert "line 3 declares" in (error.rule or "")


@pytest.mark.parametrize(
    ("launch", "kernel", "words"),
    [
        ("sofmax<<<1, 1>>>()", "__global__ void softmax() {}", "no kernel `sofmax`; did you mean `softmax`?"),
        ("k<<<1, 1>>>()", "__device__ void k() {}", "kernels in the file: none"),
        (
            "k<<<1, 1>>>()",
            "namespace a { __global__ void k() {} } namespace b { __global__ void k() {} }",
            "several",
        ),
        (
            "k<<<1, 1>>>()",
            "template <typename T> __global__ void k() {}",
            "takes 1 template arguments, the launch gives 0",
        ),
        ("k<T, 3><<<1, 1>>>()", "template <typename T> __global__ void k() {}", "gives 2"),
        ("k<T><<<1, 1>>>()", "__global__ void k() {}", "takes 0 template arguments"),
        (
            "k<T><<<1, 1>>>()",
            "template <typename T, int A, int B = 3> __global__ void k() {}",
            "takes 2 to 3",
        ),
        (
            "k<3><<<1, 1>>>()",
            "template <typename T> __global__ void k() {}",
            "takes a type for `T`, `3` is a value",
        ),
        (
            "k<T><<<1, 1>>>()",
            "template <int N> __global__ void k() {}",
            "takes a value for `N`, `T` is a type",
        ),
        ("k<float><<<1, 1>>>()", "template <int N> __global__ void k() {}", "`float` is a type"),
        ("let s = 3", "__global__ void k() {}", "launches nothing"),
    ],
)
def test_launches_that_name_nothing(launch: str, kernel: str, words: str) -> None:
    with pytest.raises(HeaderError) as caught:
        parse_candidate(candidate(launch, kernel))

    assert words in str(caught.value)
    assert caught.value.line == 2


def test_a_namespace_may_be_left_out_or_written() -> None:
    kernel = "namespace a { __global__ void k() {} }"

    for name in ("k", "a::k"):
        found = parse_candidate(candidate(f"{name}<<<1, 1>>>()", kernel))
        assert found.name_expressions({"T": "float32"}) == ("a::k",)


def test_branches_of_other_element_sizes_are_not_checked() -> None:
    source = (
        HEADER
        + "//! when sizeof(T) == 4:\n//!     wide<<<1, 1>>>(x)\n//! otherwise:\n//!     narrow<<<1, 1>>>(x)\n"
        "__global__ void wide(const float* x) {}\n__global__ void narrow(const half* x) {}"
    )
    found = parse_candidate(source)

    assert found.name_expressions({"T": "float32"}) == ("wide",)
    assert found.name_expressions({"T": "float16"}) == ("narrow",)
    with pytest.raises(HeaderError, match="`narrow` points at `half`"):
        parse_candidate(source.replace("== 4", "== N"))


def test_name_expressions_that_need_no_shapes() -> None:
    found = parse_candidate(
        HEADER
        + "//! k<T, 2 * sizeof(T), (sizeof(T) > 2), float4><<<1, 1>>>()\n//! k<T, N, true, T><<<1, 1>>>()\n"
        "//! plain<<<1, 1>>>()\n//! defaults<><<<1, 1>>>()\n"
        "template <typename T, int A, bool B, typename V> __global__ void k() {}\n"
        "__global__ void plain() {}\ntemplate <int N = 3> __global__ void defaults() {}"
    )

    assert found.name_expressions({"T": "float16"}) == ("k<__half, 4, false, float4>", "plain", "defaults<>")
    assert found.name_expressions({"T": "float32"})[0] == "k<float, 8, true, float4>"


def test_constants_of_the_source_may_be_template_arguments() -> None:
    found = parse_candidate(
        HEADER + "//! k<TILE><<<1, 1>>>()\nconstexpr int TILE = 64;\ntemplate <int N> __global__ void k() {}"
    )

    assert found.name_expressions({"T": "float32"}) == ("k<TILE>",)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_spelling_of_the_table_is_its_dtype(dtype: str) -> None:
    for cxx in DTYPES[dtype].cxx:
        assert dtype_of(cxx) == dtype
        assert accepts_pointer(cxx, dtype)


@pytest.mark.parametrize(
    ("cxx", "expected"),
    [
        ("long unsigned int", "unsigned long"),
        ("long long unsigned", "unsigned long long"),
        ("int unsigned", "unsigned int"),
        ("signed", "int"),
        ("short unsigned int", "unsigned short"),
        ("std::uint8_t", "uint8_t"),
        ("Pair", "Pair"),
    ],
)
def test_spellings_of_integers(cxx: str, expected: str) -> None:
    assert canonical(cxx) == expected
