from __future__ import annotations

import pytest
from hypothesis import given, settings

from llmkernel.candidate.header import parse_header
from llmkernel.candidate.statements import (
    ArrayUse,
    CxxArgument,
    NumberUse,
    Repeat,
    ScalarUse,
    TensorMapUse,
    When,
)
from llmkernel.errors import HeaderError
from llmkernel.problem.signature import ArraySpec, ScalarSpec
from tests.unit.candidate.strategies import headers

SIGNATURE = "//! f(x: float32[N], k: int32, eps: float32) -> y: float32[N]\n"


def body(*lines: str) -> str:
    return SIGNATURE + "".join(f"//! {line}\n" for line in lines)


@settings(max_examples=40, deadline=None)
@given(text=headers())
def test_canonical_text_parses_to_an_equal_header(text: str) -> None:
    header = parse_header(text)
    again = parse_header(str(header))

    assert again == header
    assert hash(again) == hash(header)
    assert str(again) == str(header)


def test_a_whole_header() -> None:
    source = """#include <cuda_fp16.h>
// An ordinary comment.
//! softmax(x: T[M, N]) -> y: T[M, N]
//!     where T in {float32, float16, bfloat16}
//!
//! let chunk = 8 * ceil_div(N, 64)   # elements a block
//! require N >= 1
//! scratch part: float32[chunk, M] = 0, other: T[M, N]
//! when N <= 1024:
//!     softmax_warp<T, 32><<<ceil_div(M, 8), 256>>>(x, y, M, N)
//! otherwise:
//!     repeat 3:
//!         softmax_cluster<T><<<8 * M, 512, 4 * chunk, cluster=(8, 1, 1), cooperative>>>(
//!             x + 4 * M, tensor_map(y, box=(64, 64), swizzle=128),
//!             N, repeat_index, 1e-5f)
//!         swap(y, other)
template <typename T> __global__ void softmax_warp() {}
"""
    header = parse_header(source)

    assert str(header) == (
        "//! softmax(x: T[M, N]) -> y: T[M, N]    where T in {float32, float16, bfloat16}\n"
        "//! let chunk = 8 * ceil_div(N, 64)\n"
        "//! require N >= 1\n"
        "//! scratch part: float32[chunk, M] = 0, other: T[M, N]\n"
        "//! when N <= 1024:\n"
        "//!     softmax_warp<T, 32><<<ceil_div(M, 8), 256>>>(x, y, M, N)\n"
        "//! otherwise:\n"
        "//!     repeat 3:\n"
        "//!         softmax_cluster<T><<<8 * M, 512, 4 * chunk, cluster=(8, 1, 1), cooperative>>>"
        "(x + 4 * M, tensor_map(y, box=(64, 64), swizzle=128), N, repeat_index, 1e-05)\n"
        "//!         swap(y, other)\n"
    )
    assert (header.line, header.end_line) == (3, 16)
    assert [a.name for a in header.scratch] == ["part", "other"]
    warp, cluster = header.launches
    assert (warp.line, warp.column, cluster.line) == (10, 9, 13)
    assert warp.template_arguments[0] == CxxArgument("T")
    assert str(warp.template_arguments[1]) == "32"
    array, box, _, _, number = cluster.arguments
    assert isinstance(array, ArrayUse)
    assert str(array.offset) == "4 * M"
    assert isinstance(box, TensorMapUse)
    assert box.swizzle == 128
    assert number == NumberUse(1e-5)
    assert isinstance(header.statements[3], When)
    assert isinstance(header.statements[3].otherwise[0], Repeat)


def test_signature_forms() -> None:
    header = parse_header(
        "//! g(inout state: float32[N], s: strided T[2 * N, 3], strided t: T[N], p: float32[], k: int32, c: complex64)\n"
        "//!   -> (values: T[N, k], total: int64 = 0, pairs: int64[2, max(N, 1)])\n"
        "//!   where T in {float16, bfloat16}, U in {int32}\n"
        "//! f<<<1, 1>>>()\n"
    )

    state, s, t, p, k, c = header.signature.inputs
    assert isinstance(state, ArraySpec)
    assert state.is_inout
    assert isinstance(s, ArraySpec)
    assert s.is_strided
    assert [str(d) for d in s.dims] == ["2 * N", "3"]
    assert isinstance(t, ArraySpec)
    assert t.is_strided
    assert isinstance(p, ArraySpec)
    assert p.dims == ()
    assert k == ScalarSpec("k", "int32")
    assert c == ScalarSpec("c", "complex64")
    values, total, pairs = header.signature.outputs
    assert [str(d) for d in values.dims] == ["N", "k"]
    assert total.is_zeroed
    assert total.dims == ()
    assert [str(d) for d in pairs.dims] == ["2", "max(N, 1)"]
    assert header.signature.type_variables == (("T", ("float16", "bfloat16")), ("U", ("int32",)))
    assert parse_header(str(header)) == header


def test_an_int_scalar_may_stand_in_a_shape_before_it() -> None:
    header = parse_header("//! f(x: float32[k, N], k: int64) -> y: float32[k]\n//! f<<<1, 1>>>(x, y)")

    assert header.signature.inputs[1] == ScalarSpec("k", "int64")


def test_inout_alone_is_a_result() -> None:
    header = parse_header("//! f(inout x: float32[N])\n//! f<<<1, 1>>>(x)")

    assert header.signature.outputs == ()


def test_launch_forms() -> None:
    header = parse_header(
        body(
            "k1<<<(k, 2, 3), (32, 4), shared=1024, cooperative=True>>>();",
            "ns::k2<float32, unsigned int, (k > 3), true, TILE><<<N, 128, cluster=2>>>(x, -0.5, k, eps, k + 1, y + N // 2)",
            "k3<<<1, (k), 0, cooperative=False>>>(x,)",
        )
    )

    first, second, third = header.launches
    assert [str(g) for g in first.grid] == ["k", "2", "3"]
    assert [str(b) for b in first.block] == ["32", "4"]
    assert str(first.shared) == "1024"
    assert first.is_cooperative
    assert first.arguments == ()
    assert second.kernel == "ns::k2"
    assert [str(t) for t in second.template_arguments] == ["float", "unsigned int", "k > 3", "True", "TILE"]
    assert [str(c) for c in second.cluster or ()] == ["2"]
    assert second.arguments[2:4] == (ScalarUse("k"), ScalarUse("eps"))
    assert not third.is_cooperative
    assert parse_header(str(header)) == header


def test_words_of_a_launch_may_be_names() -> None:
    header = parse_header(
        body("let cluster = 2", "let shared = 64", "k<<<8, 1, shared, cluster=(cluster, 1, 1)>>>(shared)")
    )

    assert str(header.launches[0].shared) == "shared"
    assert parse_header(str(header)) == header


def test_when_chains_and_lets_of_branches() -> None:
    header = parse_header(
        body(
            "when N < 10: let rows = 1",
            "when N < 100:",
            "  let rows = 2",
            "  when k == 1:",
            "    f<<<1, 1>>>()",
            "otherwise:",
            "  let rows = 4",
            "g<<<rows, 1>>>()",
        )
    )

    chain = header.statements[0]
    assert isinstance(chain, When)
    assert len(chain.branches) == 2
    assert parse_header(str(header)) == header


def test_header_inside_other_text() -> None:
    header = parse_header(
        "\r\n#include <x>\r\n\r\n  //! f(x: float32[N]) -> y: float32[N]\r\n  //! k<<<1, 2>>>(x)\r\nint a;\r\n"
    )

    assert header.line == 4
    assert header.launches[0].line == 5
    assert header.launches[0].column == 7


SIGNATURE_ERRORS = [
    ("", 1, 0, "no launch header"),
    ("__global__ void k() {}", 1, 0, "no launch header"),
    ("//! f", 1, 6, "expected `(`"),
    ("//! (x: float32[N])", 1, 5, "name of the callable"),
    ("//! f(x: float32[N]", 1, 6, "never closed"),
    ("//! f(x float32[N]) -> y: float32[N]", 1, 9, "expected `:`"),
    ("//! f(x: float23[N]) -> y: float32[N]", 1, 10, "did you mean `float32`"),
    ("//! f(x: float[N]) -> y: float32[N]", 1, 10, "numpy's name is `float32`"),
    ("//! f(x: U[N]) -> y: float32[N]", 1, 10, "where U in"),
    ("//! f(x: float32[N])", 1, 5, "no result"),
    ("//! f(x: float32[N]) -> y: float32[K]", 1, 36, "`K`"),
    ("//! f(x: float32[N + K]) -> y: float32[N]", 1, 22, "`K`"),
    ("//! f(x: float32[N]) -> y: T[N] where T in {float32, float16}", 1, 28, "does not determine"),
    ("//! f(x: float32[N], x: float32[N]) -> y: float32[N]", 1, 22, "already an argument"),
    ("//! f(x: float32[N], N: float32) -> y: float32[N]", 1, 25, "must be an integer"),
    ("//! f(in: float32[N]) -> y: float32[N]", 1, 7, "python"),
    ("//! f(num_sms: int32, x: float32[N]) -> y: float32[N]", 1, 7, "word of the launch header"),
    ("//! f(x: float32[N] = 0) -> y: float32[N]", 1, 21, "initial value"),
    ("//! f(x: float32[N], e: float32 = 1) -> y: float32[N]", 1, 33, "no default"),
    ("//! f(x: float32[N]) -> y: float32[N] = 1", 1, 41, "only initial value is 0"),
    ("//! f(x: float32[N]) -> strided y: float32[N]", 1, 33, "strided"),
    ("//! f(x: strided float32) -> y: float32[1]", 1, 7, "no axis"),
    ("//! f(x: float32[N,, 2]) -> y: float32[N]", 1, 20, "a dimension"),
    ("//! f(x: float32[N / 2]) -> y: float32[N]", 1, 18, "ceil_div"),
    ("//! f(x: float32[N]) -> (y: float32[N]", 1, 25, "never closed"),
    ("//! f(x: float32[N]) -> y: float32[N] banana", 1, 39, "end of the line"),
    ("//! f(x: T[N]) -> y: T[N] where T in {}", 1, 39, "expected a dtype"),
    ("//! f(x: T[N]) -> y: T[N] where T in {float32, float32}", 1, 48, "twice"),
    ("//! f(x: T[N]) -> y: T[N]\n//! where T = float32", 2, 13, "expected `in`"),
    ("//! f(x: T[N]) -> y: T[N] where T in {float32}, T in {int8}", 1, 49, "twice"),
    ("//! f(x: float32[N]) -> y: float32[N]\nint a;\n//! k<<<1, 1>>>()", 3, 1, "two places"),
    ("//! f(x: float32[N]) -> y: float32[N]\n//! k<<<1, 1>>>(é)", 2, 17, "character"),
    ("//! f(x: float32[N]) -> y: float32[aligned(x, 16)]", 1, 36, "addresses"),
]
SIGNATURE_ERRORS += [
    ("// f(x: float32[N]) -> y: float32[N]\n// k<<<1, 1>>>()", 1, 1, "written with `//`"),
    ("#include <x>\n  /// k<T><<<1, 1>>>(x)", 2, 3, "written with `///`"),
    ("//! f(x: float32[N]) -> y: float32[num_sms]", 1, 36, "cannot depend on the device"),
    ("//! f(N: float32[N]) -> y: float32[1]", 1, 7, "already a dimension"),
    ("//! f(x: float32[N]) -> y: float32[repeat_index]", 1, 36, "only inside `repeat`"),
]
BODY_ERRORS = [
    ("launch k", 5, "expected a statement"),
    ("wen N < 2:", 5, "did you mean `when`"),
    ("if N < 2:", 5, "write `when`"),
    ("otherwise:", 5, "no `when`"),
    ("when N < 2", 15, "expected `:`"),
    ("when N < 2:", 16, "block is empty"),
    ("when : k<<<1, 1>>>()", 10, "a condition"),
    ("when N < 2: when k: k<<<1, 1>>>()", 17, "its own line"),
    ("    k<<<1, 1>>>()", 9, "indentation"),
    ("let a 3", 11, "expected `=`"),
    ("let N = 3", 9, "already a dimension"),
    ("let k = 3", 9, "already an argument"),
    ("let a = M", 13, "unknown name `m`"),
    ("let a = repeat_index", 13, "only inside `repeat`"),
    ("let a = eps", 13, "only integers"),
    ("let a = x", 13, "is an array"),
    ("let a = x.stride(0)", 13, "contiguous"),
    ("let a = sizeof(float23)", 20, "did you mean `float32`"),
    ("let a = aligned(z, 16)", 21, "not an array"),
    ("require", 12, "a condition"),
    ("scratch p", 14, "expected `:`"),
    ("scratch x: float32[N]", 13, "already an argument"),
    ("scratch p: float32[J]", 24, "unknown name `j`"),
    ("swap(x, y)", 10, "input array"),
    ("swap(y, y)", 13, "itself"),
    ("swap(y, q)", 13, "unknown array"),
    ("k<<<1>>>()", 10, "a block size"),
    ("k<<<>>>()", 9, "a grid size"),
    ("k<<<1, 2, 3, 4>>>()", 18, "no stream"),
    ("k<<<(1, 2, 3, 4), 1>>>()", 19, "at most three"),
    ("k<<<1, 1, clusters=2>>>()", 15, "did you mean `cluster`"),
    ("k<<<1, 1, cluster=2, 5>>>()", 26, "keyword"),
    ("k<<<1, 1, cooperative=2>>>()", 15, "true or false"),
    ("k<<<1, 1>>>(z)", 17, "unknown name `z`"),
    ("k<<<1, 1>>>(x - 1)", 19, "`+ offset`"),
    ("k<<<1, 1>>>(x, )y", 21, "end of the line"),
    ("k<<<1, 1>>>(,)", 17, "an argument"),
    ("k<<<1, 1>>>(&x)", 17, "x + offset"),
    ("k<<<1, 1>>>(nullptr)", 17, "null pointer"),
    ("k<<<1, 1>>>(eps + 1)", 17, "only integers"),
    ("k<<<1, 1>>>(1e999)", 17, "finite"),
    ("k<<<1, 1>>>(tensor_map(q, box=(1,)))", 28, "unknown array"),
    ("k<<<1, 1>>>(tensor_map(x, box=(1, 2)))", 28, "1 axes, the box has 2"),
    ("k<<<1, 1>>>(tensor_map(x, box=8, swizzle=48))", 46, "0, 32, 64 or 128"),
    ("k<<<1, 1>>>(tensor_map(x, boxes=8))", 31, "not a keyword"),
    ("k<<<1, 1>>>(tensor_map(x))", 28, "box has 0"),
    ("k<3<<<1, 1>>>()", 6, "never closed"),
    ("k<x><<<1, 1>>>()", 7, "is an array"),
    ("k<,><<<1, 1>>>()", 7, "a template argument"),
    ("k<<<1, 1>>>", 16, "expected `(`"),
    ("k<<<1, 1))", 13, "closes nothing"),
    ("k<<<1, 1>>>(x", 16, "never closed"),
    ("k(x)", 5, "expected a statement"),
]


@pytest.mark.parametrize(("source", "line", "column", "words"), SIGNATURE_ERRORS, ids=lambda v: str(v)[:40])
def test_errors_of_the_signature(source: str, line: int, column: int, words: str) -> None:
    with pytest.raises(HeaderError) as caught:
        parse_header(source)

    error = caught.value
    assert words.lower() in str(error).lower()
    assert (error.line, error.column) == (line, column)
    assert error.rule
    assert error.received
    assert error.next_step


@pytest.mark.parametrize(("text", "column", "words"), BODY_ERRORS, ids=lambda v: str(v)[:40])
def test_errors_of_statements(text: str, column: int, words: str) -> None:
    with pytest.raises(HeaderError) as caught:
        parse_header(body("let one = 1", text))

    error = caught.value
    assert words.lower() in str(error).lower()
    assert (error.line, error.column) == (3, column)
    assert f"line 3, column {column}: " in str(error)


def test_errors_in_a_continued_line_stand_on_its_own_line() -> None:
    with pytest.raises(HeaderError) as caught:
        parse_header(body("k<<<1, 1>>>(", "    x,", "    y + M)"))

    assert (caught.value.line, caught.value.column) == (4, 13)


def test_scratch_and_swap_need_room_and_a_match() -> None:
    with pytest.raises(HeaderError, match="inside `repeat`"):
        parse_header(body("repeat 2:", "    scratch p: float32[N]"))
    with pytest.raises(HeaderError, match="differ in dtype or shape"):
        parse_header(body("scratch p: float16[N]", "swap(y, p)"))
    with pytest.raises(HeaderError, match="differ in dtype or shape"):
        parse_header(body("scratch p: float32[2 * N]", "swap(y, p)"))


def test_names_of_a_branch_are_not_seen_outside() -> None:
    with pytest.raises(HeaderError, match="Unknown name `rows`"):
        parse_header(body("when N > 3:", "    let rows = 2", "k<<<rows, 1>>>()"))
    with pytest.raises(HeaderError, match="already defined on line 2"):
        parse_header(body("let rows = 1", "when N > 3:", "    let rows = 2"))
