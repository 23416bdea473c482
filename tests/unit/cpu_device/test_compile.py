"""Compiling: diagnostics in the terms of the `.cu` file, refused constructs, the cache, the tool chains."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmkernel.devices.cpu import build as build_module
from llmkernel.devices.cpu import cache as cache_module
from llmkernel.devices.cpu import toolchain as toolchain_module
from llmkernel.devices.cpu.lexing import blank_comments
from llmkernel.devices.cpu.shared_memory import rewrite_shared
from llmkernel.devices.cpu.toolchain import find_toolchain
from llmkernel.errors import (
    CompileError,
    ConfigurationError,
    DeviceUnavailableError,
    LaunchError,
    UnsupportedFeatureError,
)

from .support import DEVICE, make_plan, results, run

ROOT = Path(__file__).parents[3]
CHOICES = ["zig", *(name for name in ("g++", "clang++") if shutil.which(name))]


@pytest.fixture(params=CHOICES)
def compiler(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("LLMKERNEL_CXX", request.param)
    return str(request.param)


def refused(source: str, kernel: str = "k") -> CompileError:
    with pytest.raises(CompileError) as caught:
        DEVICE.compile(textwrap.dedent(source).lstrip("\n"), [kernel])
    return caught.value


def test_errors_have_the_lines_of_the_file(compiler: str) -> None:
    error = refused("""
    // a comment
    /* and
       another */ extern __shared__ float s[];
    __global__ void k(float* x) {
      x[0] = undeclared_name;
      int y = x;
    }""")
    assert [d.line for d in error.diagnostics if d.severity == "error"] == [5, 6]
    assert "undeclared_name" in error.diagnostics[0].message
    text = str(error) + error.log
    assert str(Path.home()) not in text
    assert "/include/" not in text
    assert "\x1b" not in text


def test_errors_inside_headers_point_to_the_call(compiler: str) -> None:
    error = refused("""
    struct Big { double a, b; };
    __global__ void k(Big* x) {
      x[0] = __shfl_sync(0xffffffff, x[0], 0);
    }""")
    first = error.diagnostics[0]
    assert (first.line, "8 bytes" in first.message) == (3, True)


def test_a_kernel_that_is_not_there_is_named(compiler: str) -> None:
    error = refused("template <typename T> __global__ void k(T* x) {}", "q<float>")
    assert "q<float>" in error.diagnostics[0].message
    error = refused("template <typename T> __global__ void k(T* x) { x->missing(); }", "k<float>")
    assert error.diagnostics[0].line == 1


def test_an_undefined_device_function_is_named(compiler: str) -> None:
    error = refused("""
    __device__ float helper(float);

    __global__ void k(float* x) { x[0] = helper(x[0]); }""")
    assert (error.diagnostics[0].line, "helper" in error.diagnostics[0].message) == (1, True)


def test_warnings_do_not_stop_a_compilation(compiler: str) -> None:
    module = DEVICE.compile("#warning look here\n__global__ void k(int* x) { x[0] = 1; }", ["k"])
    assert [(w.severity, w.line) for w in module.warnings] == [("warning", 1)]
    # The same from the cache.
    again = DEVICE.compile("#warning look here\n__global__ void k(int* x) { x[0] = 1; }", ["k"])
    assert again.is_cached
    assert again.warnings == module.warnings


def test_logs_are_capped() -> None:
    error = refused("\n".join(f"int v{i} = unknown_{'x' * 900}{i};" for i in range(100)))
    assert len(error.log) < 20_000


def test_compilation_is_limited_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build_module, "COMPILE_SECONDS", 0.05)
    error = refused("""
    template <int A, int B> struct F { static constexpr long v = F<A - 1, B>::v + F<A, B - 1>::v; };
    template <int A> struct F<A, 0> { static constexpr long v = 1; };
    template <int B> struct F<0, B> { static constexpr long v = 1; };
    __global__ void k(long* x) { x[0] = F<200, 200>::v; }""")
    assert "did not finish" in error.what


UNSUPPORTED = {
    "inline PTX": 'asm volatile("nanosleep.u32 1;");',
    "dynamic parallelism": "k<<<1, 1>>>(x);",
    "cub": "cub::BlockReduce<float, 128> r;",
    "cuda::barrier": "cuda::barrier<cuda::thread_scope_block> b;",
    "cuda::pipeline": "auto p = cuda::make_pipeline();",
    "memcpy_async": "cooperative_groups::memcpy_async(block, a, b, 4);",
    "textures": "float v = tex2D<float>(t, 0, 0);",
    "clusters": "auto c = cooperative_groups::this_cluster();",
    "grid-wide": "cooperative_groups::this_grid().sync();",
    "fp8": "__nv_fp8_e4m3 v;",
    "coalesced_threads": "auto g = cooperative_groups::coalesced_threads();",
}


@pytest.mark.parametrize("feature", UNSUPPORTED)
def test_unsupported_constructs_are_named_with_their_line(feature: str) -> None:
    source = f"// asm tex2D cub:: in a comment\n/* <<< */\n__global__ void k(int* x) {{\n  {UNSUPPORTED[feature]}\n}}"
    with pytest.raises(UnsupportedFeatureError) as caught:
        DEVICE.compile(source, ["k"])
    assert feature in caught.value.feature
    assert caught.value.line == 4


def test_comments_and_strings_are_not_code() -> None:
    source = r"""
    // asm("x") <<< cub:: extern __shared__ float s[];
    /* texture<float> ; __nv_fp8 */
    __global__ void k(int* x) { const char* s = "asm <<< \" cub::"; x[0] = s[0] + 'a' + 1'000; }"""
    (x,) = results(source, "k", 1, 1, np.zeros(1, np.int32))
    assert x[0] == 97 * 2 + 1000


def test_modules_come_from_the_cache_and_the_key_has_the_arch() -> None:
    source = f"__global__ void k(int* x) {{ x[0] = __CUDA_ARCH__; }} // {os.getpid()}"
    assert not DEVICE.compile(source, ["k"]).is_cached
    assert DEVICE.compile(source, ["k"]).is_cached
    assert not DEVICE.compile(source, ["k"], arch="sm_90a").is_cached
    assert run(source, "k", 1, 1, np.zeros(1, np.int32)).arrays[0][0] == 800


def test_the_cache_forgets_what_was_not_used_for_longest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLMKERNEL_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(cache_module, "MAX_MODULES", 4)
    folder = cache_module.cache_directory()
    assert folder == tmp_path / "cpu"
    now = time.time()
    for i in range(6):
        for suffix in (".so", ".json"):
            (folder / f"m{i}{suffix}").touch()
        os.utime(folder / f"m{i}.so", (now - 1e6 + i, now - 1e6 + i))
    assert cache_module.is_kept(folder / "m0.so")
    assert not cache_module.is_kept(folder / "none.so")
    cache_module.prune()
    assert sorted(p.name for p in folder.glob("*.so")) == ["m0.so", "m4.so", "m5.so"]
    assert len(list(folder.glob("*.json"))) == 3


def test_sources_that_are_no_utf8() -> None:
    source = "__global__ void k(int* x) { x[0] = 1; } // \udce9\ud800 é"
    assert results(source, "k", 1, 1, np.zeros(1, np.int32))[0][0] == 1


def _compile_and_run(seed: int) -> int:
    source = f"__global__ void k(int* x) {{ x[0] = 41 + 1; }} // {seed}"
    (x,) = results(source, "k", 1, 1, np.zeros(1, np.int32))
    return int(x[0])


def test_parallel_compilations_of_one_source(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    with context.Pool(2) as pool:
        assert pool.map(_compile_and_run, [os.getpid()] * 6, chunksize=1) == [42] * 6


def in_another_process(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=120, cwd=ROOT, check=False,
        env={**{k: v for k, v in os.environ.items() if not k.startswith("LLMKERNEL_")}, **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


ADDITION = """
import numpy as np
from tests.unit.cpu_device.support import DEVICE, results
from llmkernel.devices.cpu.cache import cache_directory
source = "__global__ void k(float* x) { x[threadIdx.x] = sqrtf(x[threadIdx.x]) + erff(0.0f); }"
x, = results(source, "k", 1, 4, np.arange(4, dtype=np.float32) ** 2)
print(DEVICE.versions()["compiler_kind"], x.tolist(), cache_directory())
"""


def test_the_wheel_of_zig_is_enough(tmp_path: Path) -> None:
    said = in_another_process(ADDITION, PATH=str(tmp_path), XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert said.startswith("zig [0.0, 1.0, 2.0, 3.0]")
    assert str(tmp_path / "cache") in said


def test_a_home_that_cannot_be_written(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a directory")
    said = in_another_process(ADDITION, HOME=str(blocked), XDG_CACHE_HOME=str(blocked), TMPDIR=str(tmp_path))
    assert "[0.0, 1.0, 2.0, 3.0]" in said
    assert said.endswith(str(tmp_path / f"llmkernel-cpu-{os.getuid()}"))


def test_the_choice_of_a_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LLMKERNEL_CXX", "zig")
    assert find_toolchain().kind == "zig"
    monkeypatch.setenv("LLMKERNEL_CXX", find_toolchain().path)
    assert find_toolchain().kind == "zig"
    monkeypatch.setenv("LLMKERNEL_CXX", "no-such-compiler")
    with pytest.raises(ConfigurationError):
        find_toolchain()
    assert "LLMKERNEL_CXX" in (type(DEVICE).unavailable_reason() or "")
    monkeypatch.delenv("LLMKERNEL_CXX")
    assert type(DEVICE).unavailable_reason() is None
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(toolchain_module, "_zig", lambda: None)
    toolchain_module._find.cache_clear()
    with pytest.raises(DeviceUnavailableError, match="pip install"):
        find_toolchain()
    toolchain_module._find.cache_clear()


@pytest.mark.parametrize(
    ("grid", "block", "shared"),
    [(1, 1025, 0), (1, (1, 1, 65), 0), ((1, 70000), 1, 0), (1, 1, 227 * 1024 + 1), (0, 1, 0)],
)
def test_launches_beyond_the_limits(grid: object, block: object, shared: int) -> None:
    with pytest.raises(LaunchError) as caught:
        run("__global__ void k(int* x) {}", "k", grid, block, np.zeros(1, np.int32), shared=shared)
    assert caught.value.line == 1


def test_a_plan_that_does_not_fit_the_compiled_kernel() -> None:
    done = run("__global__ void k(int* x, double d) {}", "k", 1, 1, np.zeros(1, np.int32), np.float32(1))
    assert done.fault.kind == "launch_failed"
    done = run("__global__ void k(int* x, double d) {}", "k", 1, 1, np.zeros(1, np.int32))
    assert done.fault.kind == "launch_failed"


def test_plans_survive_the_trip_to_the_runner_whole() -> None:
    plan, _ = make_plan("k", 1, 1, (np.zeros(1, np.int32), np.int32(5)))
    assert plan.kernels() == ("k",)


@given(st.text(alphabet=st.sampled_from(list('ab/*\\"\'\n (){};R"_x[]<>#')), max_size=80))
def test_blanking_keeps_lengths_and_lines(text: str) -> None:
    blanked = blank_comments(text)
    assert len(blanked) == len(text)
    assert [i for i, c in enumerate(blanked) if c == "\n"] == [i for i, c in enumerate(text) if c == "\n"]


DECLARATIONS = st.sampled_from(
    [
        "extern __shared__ float s[];", "__shared__ extern T s[];",
        "extern __shared__ __align__(16)\n unsigned char raw[];",
        "extern __shared__ alignas(sizeof(float4) * 2) float t[][32];", "extern volatile __shared__ int v[];",
        "static __shared__ int counter;", "__shared__ float tile[32][33];", "extern __shared__ float x;",
    ]
)  # fmt: skip


@given(
    st.lists(
        st.one_of(
            DECLARATIONS, st.sampled_from(["{", "}", "\n", "// extern __shared__ int q[];\n", "int a;"])
        ),
        max_size=12,
    )
)
def test_rewriting_keeps_every_line_in_its_place(parts: list[str]) -> None:
    source = " ".join(parts)
    rewritten = rewrite_shared(source)
    assert rewritten.count("\n") == source.count("\n")
    code = blank_comments(rewritten)
    assert "extern __shared__" not in code
    assert "static __shared__" not in code


def test_too_much_static_shared_memory(compiler: str) -> None:
    error = refused("""
    __global__ void k(float* x) {
      __shared__ float small[16];
      __shared__ float
        big[60000];
      small[threadIdx.x] = big[threadIdx.x] = x[threadIdx.x];
      __syncthreads();
      x[threadIdx.x] = big[31 - threadIdx.x] + small[0];
    }""")
    assert (error.diagnostics[0].line, "240064" in error.diagnostics[0].message) == (3, True)
