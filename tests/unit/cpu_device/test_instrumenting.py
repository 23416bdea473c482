"""What is done to a candidate's text, and to clang's output, before checked mode can look at it."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from llmkernel.devices.cpu.build import build
from llmkernel.devices.cpu.copy_alignment import check_copies
from llmkernel.devices.cpu.elf import read_elf, variable_at
from llmkernel.devices.cpu.lines import line_table
from llmkernel.devices.cpu.separate_shared import separate_shared


def inside(declaration: str) -> str:
    return separate_shared(f"__global__ void k() {{ {declaration} }}")


@pytest.mark.parametrize(
    ("declaration", "names"),
    [
        ("__shared__ float tile[32][33];", ["tile"]),
        ("__shared__ float a[N < 3 ? 1 : 2], b;", ["a", "b"]),
        ("volatile __shared__ int flag;", ["flag"]),
        ("static __shared__ __align__(16) unsigned char raw[64];", ["raw"]),
        ("__shared__ alignas(alignof(float4)) Pair<T, 4> pairs[2], more[3];", ["pairs", "more"]),
        ("__shared__ union { float f[2]; int i[2]; } both;", ["both"]),
        ("x = 1; if (x) { __shared__ typename T::value v[4]; }", ["v"]),
        ("\n#pragma unroll\n__shared__ float after_a_directive[4];", ["after_a_directive"]),
    ],
)
def test_a_shared_variable_of_a_function_gets_a_place_of_its_own(declaration: str, names: list[str]) -> None:
    text = inside(declaration)
    assert re.findall(r"CPU_DEVICE_SHARED\(cpu_device_holder_\d+, (\w+)\)", text) == names
    assert "__shared__" not in text
    assert text.count("\n") == declaration.count("\n")


@pytest.mark.parametrize(
    "declaration",
    [
        "extern __shared__ float dynamic[];",
        "__shared__ extern float dynamic[];",
        "__shared__ float (*pointer)[4];",
        "float __shared__ type_first[4];",
        '// __shared__ float in_a_comment;\nputs("__shared__ float in_a_string;");',
    ],
)
def test_what_is_none_or_cannot_be_read_stays(declaration: str) -> None:
    assert "CPU_DEVICE_SHARED" not in inside(declaration)


def test_file_scope_stays() -> None:
    assert separate_shared("__shared__ float tile[4];") == "__shared__ float tile[4];"


PIECES = [
    "__shared__",
    "float a[3]",
    ";",
    "{",
    "}",
    "(",
    ")",
    "<",
    ">",
    ",",
    "extern",
    "//",
    '"',
    "\n",
    "#",
    "static",
    "x",
]


@given(st.lists(st.sampled_from(PIECES), max_size=30).map(" ".join))
@example("{ __shared__ ; }")
@example("{ __shared__ , ; }")
@example("{ __shared__ float a[3]")
def test_any_text_keeps_its_lines(text: str) -> None:
    assert separate_shared(text).count("\n") == text.count("\n")


LISTING = """
define void @k(ptr %0) !dbg !1 {
  %v = alloca %struct.float4, align 16
  %p = load ptr, ptr %0, align 8
  call void @llvm.memcpy.p0.p0.i64(ptr align 16 %v, ptr align 16 %p, i64 16, i1 false), !dbg !7, !tbaa.struct !8
  call void @llvm.memcpy.p0.p0.i64(ptr align 1 %p, ptr align 1 %0, i64 3, i1 false)
  ret void
}
"""


def test_copies_are_checked_where_they_read_and_write_memory() -> None:
    added = [line.strip() for line in check_copies(LISTING).splitlines() if line not in LISTING.splitlines()]
    assert added == ["call void @cpu_device_require_alignment(ptr %p, i64 15), !dbg !7"]


@given(st.lists(st.sampled_from(LISTING.splitlines()), max_size=20).map("\n".join))
def test_a_listing_only_gains_lines(text: str) -> None:
    kept = [line for line in check_copies(text).splitlines() if "cpu_device_require_alignment" not in line]
    assert kept == text.splitlines()


def test_lines_and_variables_of_an_instrumented_module() -> None:
    kernel = "__global__ void k() {\n  tile[threadIdx.x] = 2;\n  counts[1] = tile[3]; }"
    source = f"__device__ int counts[3];\n__shared__ float tile[8];\n{kernel}"
    module = build(source, ["k"], is_checked=True).library.read_bytes()
    begin, lines = line_table(module)
    assert begin > 0
    assert lines.dtype == np.uint16
    assert {4, 5} <= set(lines.tolist()) <= {0, 3, 4, 5}
    elf = read_elf(module)
    assert not elf.runs_code_when_loaded
    (counts,) = (v for v in elf.variables if v.name == "counts")
    found = variable_at(elf, counts.begin + 8 - elf.writable_begin, is_thread_local=False)
    assert found == counts
    assert found.nbytes == 12
    (tile,) = (v for v in elf.variables if v.name == "tile")
    assert variable_at(elf, tile.begin, is_thread_local=True) == tile
    assert variable_at(elf, 1 << 40, is_thread_local=False) is None


@given(st.binary(max_size=200))
def test_a_module_without_lines_has_an_empty_table(data: bytes) -> None:
    begin, lines = line_table(data)
    assert (begin, lines.size) == (0, 0)
