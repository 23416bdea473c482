"""The real NVRTC, which needs neither a GPU nor a driver."""

import os
import re
import subprocess
import sys

import pytest

from llmkernel.devices.cuda import compiler, headers, toolchain
from llmkernel.devices.cuda.nvrtc import check_with_nvrtc, compile_with_nvrtc
from llmkernel.errors import CompileError, UsageError

NAMES = """
constexpr float low = -INFINITY;
constexpr float missing = NAN;
static_assert(INT_MAX == 2147483647 && INT64_MIN < 0 && CHAR_BIT == 8 && sizeof(uintptr_t) == 8);
static_assert(std::numeric_limits<float>::max() == FLT_MAX && std::numeric_limits<long long>::min() == LLONG_MIN);
static_assert(std::numeric_limits<signed char>::min() == -128 && std::numeric_limits<unsigned>::max() == UINT_MAX);
static_assert(std::is_same_v<std::conditional_t<true, int8_t, float>, int8_t> && std::is_integral_v<uint64_t>);
static_assert(std::is_signed_v<float> && std::is_unsigned_v<size_t> && !std::is_floating_point_v<int>);
static_assert(std::max(1, 2) == 2 && std::min(1.0f, 2.0f) == 1.0f && std::clamp(5, 0, 3) == 3);
__global__ void f(float* x, uint8_t* bytes) {
  uintptr_t address = reinterpret_cast<uintptr_t>(x);
  x[0] = M_PI + FLT_EPSILON + DBL_MAX + HUGE_VALF + CUDART_INF_F + low;
  x[1] = std::sqrt(x[2]) + std::exp(x[3]) + (std::isnan(x[4]) ? 1 : 0) + address % 16;
  std::swap(x[5], x[6]);
  bytes[0] = UINT8_MAX;
  printf("%d", INT_MAX);
  assert(x[0] > 0);
  memset(x, 0, 4);
}
"""


MMA = """
#include <mma.h>
__global__ void f(half* a, float* c) {
  using namespace nvcuda;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> x;
  wmma::load_matrix_sync(x, a, 16);
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> y;
  wmma::fill_fragment(y, INFINITY);
  wmma::store_matrix_sync(c, y, 16, wmma::mem_row_major);
}
"""
PIPELINE = """
#include <cuda_pipeline.h>
__global__ void f(int4* x) {
  __shared__ int4 s[1];
  __pipeline_memcpy_async(s, x, 16);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  x[1] = s[0];
}
"""
BLOCK = """
template <int N>
__global__ void f(float* x) {
  __shared__ float s[N];
  s[threadIdx.x] = x[0];
  __syncthreads();
  x[1] = s[N - 1 - threadIdx.x];
}
"""


def compiles(source, *kernels, arch="sm_90a"):
    check = check_with_nvrtc(source, kernels or ("f",), arch)
    assert check.is_compiled, check.diagnostics
    return check


def errors(source, *kernels, arch="sm_90a"):
    check = check_with_nvrtc(source, kernels or ("f",), arch)
    assert not check.is_compiled
    return [d for d in check.diagnostics if d.severity == "error"]


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_100a"])
def test_names_of_c_are_there_without_and_with_their_headers(arch):
    compiles(NAMES, arch=arch)
    includes = (
        "stdint.h cstdint math.h cmath float.h cfloat limits.h climits stdio.h assert.h string.h algorithm"
    )
    text = "".join(
        f"#include <{h}>\n" for h in (*includes.split(), "type_traits", "limits", "utility", "cuda.h")
    )
    compiles(text + "#include <cuda_runtime.h>\n" + NAMES, arch=arch)


def test_the_prelude_and_libcudacxx_stand_side_by_side():
    names = ("cstdint", "limits", "cmath", "climits", "cfloat", "type_traits")
    text = "".join(f"#include <cuda/std/{name}>\n" for name in names)
    assert "redefinition" not in compiles(text + NAMES).log


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_100a"])
@pytest.mark.parametrize(
    "source",
    [
        "#include <cuda_fp16.h>\n__global__ void f(__half2* x) { x[0] = __hfma2(x[1], x[2], x[3]); }",
        "#include <cuda_bf16.h>\n__global__ void f(__nv_bfloat16* x) { x[0] = __float2bfloat16(INFINITY); }",
        "#include <cuda_fp8.h>\n__global__ void f(__nv_fp8_e4m3* x) { x[0] = __nv_fp8_e4m3(1.5f); }",
        MMA,
        PIPELINE,
    ],
    ids=["fp16", "bf16", "fp8", "mma", "pipeline"],
)
def test_device_headers_compile(source, arch):
    compiles(source, arch=arch)


def test_cooperative_groups_and_cub_compile():
    compiles(
        "#include <cooperative_groups.h>\n#include <cub/block/block_reduce.cuh>\n#include <cstdint>\n"
        "__global__ void f(float* x, int32_t n) {\n"
        "  using Reduce = cub::BlockReduce<float, 128>; __shared__ typename Reduce::TempStorage kept;\n"
        "  float s = Reduce(kept).Sum(x[threadIdx.x]); auto g = cooperative_groups::this_thread_block(); g.sync();\n"
        "  if (g.thread_rank() == 0) x[0] = s == 0 ? -INFINITY : s;\n}"
    )


def test_resources_are_those_of_each_instance():
    resources = compiles(BLOCK, "f<100>", "f<200>").resources
    assert resources["f<100>"].static_shared_bytes == 400
    assert resources["f<200>"].static_shared_bytes == 800
    assert resources["f<100>"].registers > 0
    assert resources["f<100>"].spill_bytes == 0


def test_lines_are_those_of_the_file():
    (first, second) = errors(
        "#include <cuda_fp16.h>\n\n__global__ void f(float* x) {\n  x[0] = y;\n\tx[1] = z;\n}\n"
    )
    assert (first.line, first.column, first.message) == (4, 10, 'identifier "y" is undefined')
    assert (second.line, second.column) == (5, 9)


@pytest.mark.parametrize(
    ("source", "line", "text"),
    [
        ("#include <iostream>\n__global__ void f() {}", 1, "<iostream> cannot be used in a kernel: it is host code"),
        ("\n#include <vector>\n__global__ void f() {}", 2, "<vector> cannot be used"),
        ("#include <torch/extension.h>\n__global__ void f() {}", 1, "PyTorch's C++ API is host code"),
        ("#include <thrust/sort.h>\n__global__ void f() {}", 1, "Thrust launches kernels from the host"),
        ("#include <cub/cub.cuh>\n__global__ void f() {}", 1, "<cub/cub.cuh> cannot be used"),
        ("#include <curand_kernel.h>\n__global__ void f() {}", 1, "Philox"),
        ("#include <nothing_like_it.h>\n__global__ void f() {}", 1, "does not exist here"),
        ("float g(float x) { return x; }\n__global__ void f() {}", 1, "mark it __device__"),
        ("__global__ void g() {}", 0, "in a kernel name of the launch header"),
        ('__global__ void f() { asm("nonsense;"); }', 0, "nonsense"),
        (BLOCK, 0, "too much shared data"),
    ],
)  # fmt: skip
def test_errors_name_what_is_wrong(source, line, text):
    first = errors(source, "f<99999>" if source is BLOCK else "f")[0]
    assert text in first.message
    assert first.line == line


def test_no_path_of_this_machine_is_shown():
    check = check_with_nvrtc("#include <cub/cub.cuh>\n__global__ void f() { y; }", ("f",), "sm_90a")
    shown = check.log + "".join(d.message for d in check.diagnostics)
    assert not any(str(directory) in shown for directory in toolchain.include_directories())
    assert "/llmkernel/" not in shown


def test_files_beside_the_process_cannot_be_included(tmp_path, monkeypatch):
    (tmp_path / "secret.h").write_text("int x;")
    monkeypatch.chdir(tmp_path)
    assert "does not exist here" in errors('#include "secret.h"\n__global__ void f() {}')[0].message


@pytest.mark.parametrize("arch", ["sm90", "compute_90", "90", "sm_9x", "", "sm_90a -I/"])
def test_an_architecture_has_a_form(arch):
    with pytest.raises(UsageError, match="not an architecture"):
        check_with_nvrtc("__global__ void f() {}", ("f",), arch)


def test_a_gpu_newer_than_the_compiler_gets_code_that_the_driver_compiles():
    binary = compile_with_nvrtc("__global__ void f(float* x) { x[0] = 1; }", ("f",), "sm_999")
    assert not binary.is_machine_code
    assert b".entry _Z1fPf" in binary.code


def test_the_prelude_leaves_nothing_behind():
    code = compile_with_nvrtc("__global__ void f(float* x) { x[0] = 1; }", ("f",), "sm_999").code.decode()
    assert ".global " not in code
    assert code.count(".entry") == 1


def test_denormals_and_division_are_ieee():
    ptx = compile_with_nvrtc(
        "__global__ void f(float* x) { x[0] = x[1] * x[2]; x[3] = x[4] / x[5]; x[6] = sqrtf(x[7]); }",
        ("f",),
        "sm_999",
    ).code.decode()
    assert ".ftz" not in ptx
    assert "div.rn.f32" in ptx
    assert "sqrt.rn.f32" in ptx


def test_the_wgmma_of_hopper_needs_its_own_architecture():
    source = '__global__ void f() { asm volatile("wgmma.fence.sync.aligned;"); }'
    compiles(source, arch=toolchain.architecture_name(9, 0))
    assert errors(source, arch="sm_90")


def test_what_was_compiled_once_is_found_again(tmp_path, monkeypatch):
    monkeypatch.setenv("LLMKERNEL_CACHE_DIR", str(tmp_path))
    source = "template <typename T> __global__ void f(T* x) { x[0] = 1; int unused; }"
    first = compiler.compile_cached(source, ("f<float>", "f<double>"), "sm_80")
    again = compiler.compile_cached(source, ("f<double>", "f<float>"), "sm_80")
    assert (first.is_cached, again.is_cached) == (False, True)
    assert again.binary.code == first.binary.code
    assert again.binary.lowered == first.binary.lowered
    assert again.binary.resources == first.binary.resources
    assert again.binary.diagnostics == first.binary.diagnostics
    assert not compiler.compile_cached(source, ("f<float>",), "sm_80").is_cached
    assert not compiler.compile_cached(source, ("f<float>", "f<double>"), "sm_90a").is_cached
    assert not compiler.compile_cached(source + " ", ("f<float>", "f<double>"), "sm_80").is_cached


@pytest.mark.parametrize("damage", [b"", b"\x7fELF damaged"])
def test_a_damaged_cache_entry_is_compiled_again(tmp_path, monkeypatch, damage):
    monkeypatch.setenv("LLMKERNEL_CACHE_DIR", str(tmp_path))
    source = "__global__ void f(float* x) { x[0] = 1; }"
    first = compiler.compile_cached(source, ("f",), "sm_80")
    first.path.write_bytes(damage)
    again = compiler.compile_cached(source, ("f",), "sm_80")
    assert not again.is_cached
    assert again.binary.code == first.binary.code
    first.path.with_suffix(".json").write_text("[")
    assert not compiler.compile_cached(source, ("f",), "sm_80").is_cached


def test_a_changed_header_is_a_new_compilation(tmp_path, monkeypatch):
    monkeypatch.setenv("LLMKERNEL_CACHE_DIR", str(tmp_path))
    source = "#include <llmkernel.cuh>\n__global__ void f(float* x) { x[0] = llmkernel::warp_sum(x[1]); }"
    first = compiler.compile_cached(source, ("f",), "sm_80")
    changed = headers.memory_headers() | {"llmkernel.cuh": headers.memory_headers()["llmkernel.cuh"] + "\n"}
    headers.memory_headers_hash.cache_clear()
    monkeypatch.setattr(headers, "memory_headers", lambda: changed)
    assert compiler.compile_cached(source, ("f",), "sm_80").path != first.path
    headers.memory_headers_hash.cache_clear()


def test_a_refused_source_is_an_error_that_says_where(tmp_path, monkeypatch):
    monkeypatch.setenv("LLMKERNEL_CACHE_DIR", str(tmp_path))
    with pytest.raises(CompileError) as caught:
        compiler.compile_cached("__global__ void f(float* x) {\n  x[0] = y;\n}\n", ("f",), "sm_80")
    assert 'line 2: identifier "y" is undefined' in str(caught.value)
    assert caught.value.diagnostics[0].line == 2
    assert "x[0] = y;" in caught.value.log
    assert not list(tmp_path.rglob("*.cubin"))


def test_a_full_cache_loses_its_oldest_half(tmp_path):
    for age in range(10):
        (tmp_path / str(age)).write_text("")
        os.utime(tmp_path / str(age), (1000 - age, 1000 - age))
    toolchain.prune(tmp_path, 10)
    assert len(list(tmp_path.iterdir())) == 10
    toolchain.prune(tmp_path, 9)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["0", "1", "2", "3", "4"]


def test_a_cache_that_cannot_be_written_is_replaced_by_a_temporary_one(tmp_path, monkeypatch):
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("LLMKERNEL_CACHE_DIR", str(blocked))
    path = toolchain.cache_directory("cubin")
    assert path.is_dir()
    assert blocked not in path.parents


def test_importing_the_device_imports_nothing_heavy():
    code = """
import sys
from llmkernel.devices.cuda.device import CudaDevice
CudaDevice.unavailable_reason()
print([m for m in ("torch", "cupy", "pynvml") if m in sys.modules])
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_the_header_file_lists_what_it_holds():
    text = headers.memory_headers()["llmkernel.cuh"]
    summary = text.split("#pragma once", 1)[0]
    for name in re.findall(r"\b[a-z][a-z0-9]*(?:_[a-zA-Z0-9]+)+\b", summary.split("It compiles", 1)[0]):
        assert len(re.findall(rf"\b{name}\b", text)) > 1 or name in ("sm_80", "sm_90", "sm_90a"), name
