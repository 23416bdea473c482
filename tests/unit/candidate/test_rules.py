from __future__ import annotations

import pytest

from llmkernel.candidate.rules import RULES, all_rules, check_rules
from llmkernel.errors import RejectedError

KERNEL = "__global__ void k(float* x) { x[0] = 1; }\n"


def device(body: str) -> str:
    return f"__device__ void f(float* x) {{ {body} }}"


REFUSED = [
    ("main-function", "int main() { return 0; }"),
    ("main-function", "int main(int argc, char** argv) { return 0; }"),
    ("launch-in-code", device("k<<<1, 1>>>(x);")),
    ("launch-in-code", "#define RUN k<<<1, 1>>>(0)"),
    ("host-call", device("cudaMalloc(0, 4);")),
    ("host-call", device("cudaMemcpyAsync(x, x, 4, 0, 0);")),
    ("host-call", device("cuLaunchKernel(0);")),
    ("host-call", device("cudaLaunchKernel(0);")),
    ("host-call", device("cublasSgemm(0);")),
    ("host-call", device("cuda\\\nMalloc(0, 4);")),
    ("host-call", "#define ALLOCATE cudaMalloc\n" + device("ALLOCATE(0, 4);")),
    ("system-call", device('system("true");')),
    ("system-call", device('fopen("/etc/passwd", "r");')),
    ("system-call", device("exit(1);")),
    ("system-call", device('::system("true");')),
    ("system-call", device('std::system("true");')),
    ("system-call", "#define RUN(x) system(x)\n" + device('RUN("true");')),
    ("host-library", device("std::vector<float> v;")),
    ("host-library", "#include <array>\n" + device("std::cout << x[0];")),
    ("python-binding", "PYBIND11_MODULE(a, m) {}"),
    ("python-binding", device("torch::Tensor t;")),
    ("python-binding", device("at::cuda::getCurrentCUDAStream();")),
    ("python-code", "import torch"),
    ("python-code", "import torch.nn as nn"),
    ("python-code", "from torch import nn"),
    ("python-code", "def forward(self, x):\n    return x"),
    ("host-function", "void launch(float* x) { }"),
    ("host-function", "template <typename T> T twice(T a) { return 2 * a; }"),
    ("host-function", "void launch(float* DATA) { }"),
    ("host-function", "static inline float g(float a) { return a; }"),
    ("host-function", "__host__ float g(float a) { return a; }"),
    ("c-linkage", 'extern "C" int write(int, const void*, int);'),
    ("c-linkage", 'extern "C" { int puts(const char*); }'),
    ("c-linkage", 'extern "C" __global__ void write(float* x) {}'),
    ("c-linkage", '#define JOIN(a, b) a##b\nextern "C" int JOIN(sys, tem)(const char*);'),
    ("control-character", "// \x00"),
    ("control-character", "// \x1b[2J"),
    ("control-character", "// \u202e desrever"),
    ("control-character", "// \ud800"),
    ("include", "#include <torch/extension.h>"),
    ("include", "#include <ATen/ATen.h>"),
    ("include", "#include <pybind11/pybind11.h>"),
    ("include", "#include <iostream>"),
    ("include", "#include <vector>"),
    ("include", "#include <cub/cub.cuh>"),
    ("include", "#include <cub/device/device_reduce.cuh>"),
    ("include", "#include <thrust/sort.h>"),
    ("include", "#include <unistd.h>"),
    ("include", '#include "/etc/passwd"'),
    ("include", '#include "../secret.h"'),
    ("include", "#include <cuda/../../etc/passwd>"),
    ("include", '#include "mine.h"'),
    ("include", "#  include   <iostream>"),
    ("include", "%:include <iostream>"),
    ("include", "#inc\\\nlude <iostream>"),
    ("include", "# /* x */ include <iostream>"),
    ("include", "#define HEADER <iostream>\n#include HEADER"),
    ("include", "#include_next <math.h>"),
    ("include", "#import <math.h>"),
    ("directive", 'const unsigned char data[] = {\n#embed "/etc/passwd"\n};'),
    ("directive", '#line 1 "other.cu"'),
    ("directive", "#if __has_include(</etc/passwd>)\n#endif"),
    ("directive", '#ident "x"'),
    ("clock", device("x[0] = clock64() % 7;")),
    ("clock", device("x[0] = clock();")),
    ("clock", device("auto now = clock; x[0] = now();")),
    ("clock", "#define NOW clock64\n" + device("x[0] = NOW();")),
    ("clock", device("x[0] = cuda::std::chrono::steady_clock::now().time_since_epoch().count();")),
    ("clock", device('unsigned i; asm("mov.u32 %0, %%smid;" : "=r"(i)); x[0] = i;')),
    ("clock", device('unsigned i; asm volatile("mov.u32 %0, %%" "clock;" : "=r"(i)); x[0] = i;')),
    ("clock", device('unsigned long long i; asm("mov.u64 %0, %%globaltimer;" : "=l"(i)); x[0] = i;')),
    ("spin-wait", device("while (x[0] == 0.0f) {}")),
    ("pragma", '#pragma GCC optimize("O0")'),
    ("pragma", '#pragma comment(lib, "x")'),
    ("pragma", device('_Pragma("GCC poison x")')),
    ("pragma", '#define P _Pragma("clang attribute push")'),
    ("redefinition", "#define float double"),
    ("redefinition", "#define __syncthreads()"),
    ("redefinition", "#undef __global__"),
    ("redefinition", "#define if(x) if (true)"),
    ("stray-character", device("\\u0073ystem(0);")),
    ("stray-character", device("float é = 1;")),
    ("stray-character", device("x[0] = 1 @ 2;")),
    ("file-scope-asm", 'asm(".globl x");'),
    ("file-scope-asm", '__asm__("nop");'),
    ("file-scope-asm", '__device__ int f() asm("system");'),
    ("assembly", device('asm volatile(".incbin \\"/etc/passwd\\"");')),
    ("assembly", device('asm(".inc" "bin \\"x\\"");')),
    ("assembly", device('asm("\\n.section .init");')),
    ("assembly", device('asm("nop; .pushsection .text");')),
    ("assembly", device('asm("\\x2eincbin");')),
    ("assembly", device('asm(R"(\n.include "x")");')),
    ("assembly", device('asm volatile("syscall");')),
    ("assembly", device('asm volatile("int $0x80");')),
    ("attribute", "__attribute__((constructor)) __device__ void f() {}"),
    ("attribute", "__attribute__((unused, __destructor__)) __device__ void f() {}"),
    ("attribute", '__attribute__((section(".init_array"))) __device__ int a;'),
    ("attribute", '__device__ int g() __attribute__((ifunc("f")));'),
    ("attribute", "[[gnu::constructor]] __device__ void f() {}"),
    ("attribute", "[[using gnu: constructor]] __device__ void f() {}"),
]
ALLOWED = [
    "",
    device("int clock = 3; x[clock] = 0; __nanosleep(20); int i = min(clock, 4);"),
    device('unsigned i; asm("mov.u32 %0, %%laneid;" : "=r"(i)); x[0] = i;'),
    "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n#include <mma.h>\n#include <cooperative_groups/reduce.h>",
    (
        "#include <cuda/std/complex>\n"
        '#include <cub/block/block_reduce.cuh>\n#include <math.h>\n#include <stdio.h>\n#include "llmkernel.cuh"\n'
        "#include <cstdint>"
    ),
    "// system(0); cudaMalloc(); #include <iostream>\n/* k<<<1, 1>>>() */",
    'const char* text = "system(0) <<< import torch";',
    "#pragma once\n#pragma unroll 4\n#pragma nv_diag_suppress 177",
    device('asm volatile("ld.global.f32 %0, [%1];" : "=f"(x[0]) : "l"(x));'),
    device(
        'asm volatile("{\\n\\t.reg .pred p;\\n\\tmbarrier.try_wait.shared::cta.b64 p, [%0], %1;\\n\\t}" :: "r"(1), "r"(2));'
    ),
    device('_Pragma("unroll") for (int i = 0; i < 4; ++i) x[i] = 0;'),
    device('printf("%f", x[0]); assert(x); cudaGridDependencySynchronize();'),
    "struct __attribute__((aligned(16))) Pair { float a; __device__ float sum() const { return a; } };",
    "struct alignas(16) Vec { float v[4]; };",
    "[[nodiscard]] __device__ int g() { return 1; }",
    "__launch_bounds__(64) __global__ void other(float* x) {}\n__align__(16) struct A { float a[4]; };",
    device("int remove(int); float* p = x; p->remove(1); atexit_flag(x);"),
    "constexpr int tile(int n) { return n * 2; }\nconstexpr int TILE = tile(32);",
    "__host__ __device__ float g(float a) { return a; }",
    "#define DEVICE __device__ __forceinline__\nDEVICE float g(float a) { return a; }",
    "#define MAKE(name, op) __device__ float name(float a) { return op; }\nMAKE(twice, 2 * a)",
    "#ifndef __MINE\n#define __MINE 1\n#endif\ntypedef float pair __attribute__((ext_vector_type(2)));",
    "#define JOIN(a, b) a##b\n__device__ int JOIN(x, y) = 1;",
    "namespace a { template <typename T> struct Traits { using type = T; }; }",
    "__device__ void read(float* p) {} __device__ void write(float* p) {}\n" + device("read(x); write(x);"),
    "__device__ auto square = [] __device__(float a) { return a * a; };",
    "enum class Mode { sum, max };\nusing real = float;\ntypedef unsigned int word;\n__constant__ float t[2] = {1, 2};",
    device("cuda::std::array<float, 4> a; x[0] = a[0];"),
    device("int from = 1, import = 2, def = 3; x[0] = from + import + def;"),
    device("nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 16, float> c;"),
    'extern "C" __device__ float helper(float a) { return a; }',
    'extern "C" __global__ void other(float* x) {}',
    "extern __shared__ float shared_memory[];",
]


@pytest.mark.parametrize(("name", "code"), REFUSED)
def test_what_is_refused(name: str, code: str) -> None:
    with pytest.raises(RejectedError) as caught:
        check_rules(KERNEL + code)

    error = caught.value
    assert error.rule_name == name
    assert 2 <= error.line <= 2 + code.count("\n")
    assert RULES[name].reason in str(error)
    assert error.next_step


def test_a_source_without_end_is_refused_before_it_is_read() -> None:
    with pytest.raises(RejectedError, match="characters") as caught:
        check_rules(KERNEL + "// " + 1_000_000 * "a")

    assert caught.value.rule_name == "length"
    assert caught.value.next_step


@pytest.mark.parametrize("code", ALLOWED)
def test_what_is_allowed(code: str) -> None:
    check_rules(code + "\n" + KERNEL)


def test_a_source_without_a_kernel() -> None:
    for source in ("", "// __global__ void k() {}", '__device__ const char* s = "__global__";'):
        with pytest.raises(RejectedError, match="no `__global__` function") as caught:
            check_rules(source)
        assert caught.value.rule_name == "no-kernel"


def test_every_rule_has_a_test_and_a_reason() -> None:
    check_rules(KERNEL)

    assert {name for name, _ in REFUSED} | {"no-kernel"} == {rule.name for rule in all_rules()}
    for rule in RULES.values():
        assert rule.reason
        assert rule.next_step
