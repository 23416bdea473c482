from __future__ import annotations

import pytest

from llmkernel.candidate.parameters import KernelDeclaration, parse_kernels
from llmkernel.errors import HeaderError


def one(source: str) -> KernelDeclaration:
    (kernel,) = parse_kernels(source)
    return kernel


def signature(source: str) -> str:
    return str(one(source)).split("__global__ void ")[1]


@pytest.mark.parametrize(
    ("parameter", "expected"),
    [
        ("const float* x", "const float* x"),
        ("float const *x", "const float* x"),
        ("const float* __restrict__ x", "const float* x"),
        ("float * const x", "float* x"),
        ("float x[]", "float* x"),
        ("const float x[16]", "const float* x"),
        ("unsigned long long int n", "unsigned long long int n"),
        ("unsigned n", "unsigned n"),
        ("unsigned", "unsigned"),
        ("long long", "long long"),
        ("const int n", "const int n"),
        ("int n = 3", "int n"),
        ("int n = f(1, 2)", "int n"),
        ("float** x", "float** x"),
        ("const T& x", "const T& x"),
        ("struct Pair p", "Pair p"),
        ("const __grid_constant__ CUtensorMap map", "const CUtensorMap map"),
        ("const CUtensorMap __grid_constant__ map", "const CUtensorMap map"),
        ("cuda::std::complex<float> z", "cuda::std::complex<float> z"),
        ("const std::int64_t n", "const std::int64_t n"),
        ("Vec<float, 4>* v", "Vec<float,4>* v".replace(",4", ", 4")),
        ("[[maybe_unused]] int n", "int n"),
        ("typename Traits<T>::type* x", "Traits<T>::type* x"),
        ("/* size */ int n // rows\n", "int n"),
        ("real a", "float a"),
        ("creal_ptr a", "const float* a"),
        ("const real* a", "const float* a"),
        ("WORD a", "unsigned int a"),
        ("index_t a", "long long a"),
    ],
)
def test_one_parameter(parameter: str, expected: str) -> None:
    aliases = "using real = float; typedef const real* creal_ptr;\n#define WORD unsigned int\nusing index_t = long long;\n"
    assert signature(aliases + f"__global__ void k({parameter}) {{}}") == f"k({expected})"


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("__global__ void k() {}", ["k"]),
        ("__global__ void k(void) {}", ["k"]),
        ('extern "C" __global__ void k() {}', ["k"]),
        ('extern "C" { __global__ void a() {} __global__ void b() {} }', ["a", "b"]),
        ("static __global__ void __launch_bounds__(256, 2) k() {}", ["k"]),
        ("__launch_bounds__(128) __global__ void k() {}", ["k"]),
        ("__global__ __launch_bounds__(128) __cluster_dims__(2, 1, 1) void k() {}", ["k"]),
        ("__global__ void __attribute__((noinline)) k() {}", ["k"]),
        ("[[maybe_unused]] __global__ void k() {}", ["k"]),
        (
            "namespace a { namespace b { __global__ void k() {} } __global__ void k() {} }",
            ["a::b::k", "a::k"],
        ),
        ("namespace a::b { __global__ void k() {} }", ["a::b::k"]),
        ("namespace { __global__ void k() {} }", ["k"]),
        ("inline namespace v1 { __global__ void k() {} }", ["v1::k"]),
        ('#define KERNEL extern "C" __global__ void\nKERNEL k() {}', ["k"]),
        ("// __global__ void a() {}\n/* __global__ void b() {} */ __global__ void k() {}", ["k"]),
        ('const char* s = "__global__ void a() {}"; __global__ void k() {}', ["k"]),
        ('const char* s = R"x(" __global__ void a() {} )x"; __global__ void k() {}', ["k"]),
        ("const char c = '\"'; __global__ void k() {}", ["k"]),
        ("struct S { int a; __device__ int f() { return 1; } }; __global__ void k() {}", ["k"]),
        ("__device__ int t[] = {1, 2}; __global__ void k(int n = 3) {} __global__ void l() {}", ["k", "l"]),
        ("__glo\\\nbal__ void k() {}", ["k"]),
        ("#if 0\n__global__ void a() {}\n#else\n__global__ void b() {}\n#endif\n", ["b"]),
        ("#if X\n__global__ void k(int n) {}\n#else\n__global__ void k(int n) {}\n#endif\n", ["k"]),
        ("__global__ void k(int n); __global__ void k(int m) {}", ["k"]),
        (
            "template <typename T> __global__ void k(T* x) {} template __global__ void k<float>(float*);",
            ["k"],
        ),
        (
            "template <typename T> __global__ void k(T* x) {} template <> __global__ void k<int>(int* x) {}",
            ["k"],
        ),
        ("__device__ void f() { int __global__x; }", []),
        ("#define BOUNDS(n) __launch_bounds__(n)\nBOUNDS(64) __global__ void k(int n) {}", ["k"]),
        ("__global__ void BOUNDS(64) k(int n) {}", ["k"]),
        ("__global__ void k(int n) try { } catch (...) { } __global__ void l() {}", ["k", "l"]),
        ("MAKE_KERNELS(float)\n__global__ void k(int n) {}", ["k"]),
        ("__global__ void k(int n) noexcept(true) __attribute__((noinline)) {}", ["k"]),
        ("template <typename T> __global__ void k(T n) requires (sizeof(T) > 2) {}", ["k"]),
        ("", []),
    ],
)
def test_which_kernels_are_found(source: str, names: list[str]) -> None:
    assert [k.name for k in parse_kernels(source)] == names


def test_template_parameters() -> None:
    kernel = one(
        "template <typename T, class U = float, int N = 4 * (2 + 1), bool IsCausal = (3 > 2),"
        " unsigned, size_t S, typename... Rest>\n__global__ void k(T* x) {}"
    )

    assert [(p.name, p.type, p.default, p.is_type, p.is_pack) for p in kernel.template_parameters] == [
        ("T", "typename", None, True, False),
        ("U", "typename", "float", True, False),
        ("N", "int", "4*(2+1)", False, False),
        ("IsCausal", "bool", "(3>2)", False, False),
        ("", "unsigned", None, False, False),
        ("S", "size_t", None, False, False),
        ("Rest", "typename", None, True, True),
    ]


def test_facts_of_one_kernel() -> None:
    kernel = one(
        "\n\ntemplate <typename T = float>\n"
        "__global__ void __launch_bounds__(256, 2) __cluster_dims__(8, 1, 1)\n"
        "    k(const T* __restrict__ x,\n      T* y, const __grid_constant__ CUtensorMap m) {}"
    )

    assert (kernel.line, kernel.column) == (5, 5)
    assert kernel.max_threads == 256
    assert kernel.cluster == (8, 1, 1)
    x, y, m = kernel.parameters
    assert (x.is_const, x.is_restrict, x.pointer_depth, x.line) == (True, True, 1, 5)
    assert (y.is_const, y.is_restrict, y.line, y.column) == (False, False, 6, 7)
    assert m.is_grid_constant


def test_a_forward_declaration_lends_its_defaults() -> None:
    kernel = one(
        "template <typename T, int N = 4> __global__ void __launch_bounds__(64) k(T* x);\n"
        "template <typename T, int N>\n__global__ void k(T* x) {}"
    )

    assert kernel.template_parameters[1].default == "4"
    assert kernel.max_threads == 64
    assert kernel.line == 3
    assert kernel.is_definition


@pytest.mark.parametrize(
    "source",
    [
        "__global__ void k(int n) {}\n__global__ void k(float n) {}",
        "__global__ void k(int n) {}\n__global__ void k(int n) {}",
        "__global__ void k(int n);\n__global__ void k(int n, int m) {}",
    ],
)
def test_two_kernels_of_one_name_are_refused(source: str) -> None:
    with pytest.raises(HeaderError, match="`k` is declared twice") as caught:
        parse_kernels(source)

    assert (caught.value.line, caught.value.column) == (2, 17)
