"""Sources that would keep a compiler busy, or fill its memory or the disk, end as compile errors within its limits."""

from __future__ import annotations

import pytest

from llmkernel.devices.cpu import build
from llmkernel.devices.cpu.device import CpuDevice
from llmkernel.errors import CompileError

KERNEL = "__global__ void f(float* x) {{ {body} }}\n"


def laughs(depth: int, leaf: str) -> str:
    """Macros of which each is ten of the one before."""
    lines = [f"#define A0 {leaf}"]
    lines += [f"#define A{i} " + " ".join([f"A{i - 1}"] * 10) for i in range(1, depth + 1)]
    return "\n".join(lines) + "\n"


BOMBS = {
    "templates without end": "template <int N> struct B { static const int v = B<N + 1>::v; };\n"
    + KERNEL.format(body="x[0] = B<0>::v;"),
    "templates that double": (
        "template <int D, unsigned long long P> struct B {\n"
        "  static const int v = B<D - 1, 2 * P>::v + B<D - 1, 2 * P + 1>::v;\n};\n"
        "template <unsigned long long P> struct B<0, P> { static const int v = 1; };\n"
    )
    + KERNEL.format(body="x[0] = B<40, 1>::v;"),
    "macros that multiply": laughs(10, "x[0] += 1;") + KERNEL.format(body="A10"),
    "macros that multiply a name": laughs(9, "a") + KERNEL.format(body="int b = sizeof(#A9);"),
    "a macro of a hundred thousand sums": "#define M "
    + "1+" * 100_000
    + "1\n"
    + KERNEL.format(body="x[0] = M + M;"),
    "constant evaluation without end": "constexpr int g(int n) { int s = 0; while (true) s = (s + n) & 7; return s; }\n"
    + KERNEL.format(body="constexpr int v = g(1); x[0] = v;"),
    "an initialised array of gigabytes": "__device__ char big[1l << 36] = {1};\n"
    + KERNEL.format(body="x[0] = big[5];"),
    "many large initialised arrays": "".join(f"__device__ char b{i}[1l << 28] = {{1}};\n" for i in range(20))
    + KERNEL.format(body="x[0] = b0[5];"),
    "messages without end": (
        'template <int N> struct W { static_assert(N < 0, "' + "long " * 2000 + '"); W<N - 1> inner; };\n'
    )
    + KERNEL.format(body="W<800> w;"),
    "braces without end": "{" * 100_000,
    "parentheses without end": KERNEL.format(body="x[0] = " + "(" * 50_000 + "1;"),
}


@pytest.fixture(autouse=True)
def _small_limits(monkeypatch):
    monkeypatch.setattr(build, "COMPILE_SECONDS", 1.0)
    monkeypatch.setattr(build, "_COMPILER_MEMORY", 300 << 20)
    monkeypatch.setattr(build, "_LARGEST_FILE_BYTES", 16 << 20)


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_a_compile_error(name):
    with pytest.raises(CompileError) as caught:
        CpuDevice().compile(BOMBS[name], ["f"])
    assert len(caught.value.log) < 64 * 1024
