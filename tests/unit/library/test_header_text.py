"""Rewriting the signature line of a launch header."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmkernel.candidate.header import parse_header
from llmkernel.library.catalogue import shipped_entries
from llmkernel.library.header_text import (
    SignatureLine,
    Term,
    fix_scalar,
    read_signature,
    rename,
    reorder_inputs,
    spread_axes,
)

SOURCE = """\
// a comment
//! scale(x: T[M, N], w: T[N], a: float64, k: int32) -> y: T[M, k]    where T in {float32, float16}
//! when M > 4:
//!     f<T><<<M, 32>>>(x, w, y, a, N, k)
//! otherwise:
//!     g<T><<<k, 32>>>(a, x, w, y)
__global__ void f() { float a; }
"""


def test_more_axes():
    text = spread_axes(SOURCE, "M", 3)

    assert "x: T[M0, M1, M2, N]" in text
    assert "-> y: T[M0, M1, M2, k]" in text
    assert "//! let M = M0 * M1 * M2\n//! when M > 4:" in text


def test_no_axes():
    text = spread_axes(SOURCE, "M", 0)

    assert "x: T[N], w: T[N]" in text
    assert "//! let M = 1\n" in text


def test_one_axis_changes_nothing():
    assert spread_axes(SOURCE, "M", 1) == SOURCE


def test_order_and_name():
    text = rename(reorder_inputs(SOURCE, [3, 1, 0, 2]), "other")

    assert "//! other(k: int32, w: T[N], x: T[M, N], a: float64) -> y" in text


def test_a_float_becomes_a_number_in_the_launches():
    text = fix_scalar(SOURCE, "a", 0.5)

    assert "(x, w, y, 0.5, N, k)" in text
    assert "(0.5, x, w, y)" in text
    assert "a: float64" not in text
    assert "float a;" in text
    assert str(parse_header(text).signature).startswith("scale(x: T[M, N], w: T[N], k: int32)")


def test_an_integer_becomes_a_let():
    text = fix_scalar(SOURCE, "k", 7)

    assert "-> y: T[M, 7]" in text
    assert "//! let k = 7" in text
    assert str(parse_header(text).signature).endswith("where T in {float32, float16}")


def test_a_source_without_a_signature():
    with pytest.raises(ValueError, match="no signature"):
        read_signature("__global__ void f() {}")


@pytest.mark.parametrize("name", [e.name for e in shipped_entries()])
def test_it_reads_what_the_parser_reads(name):
    source = next(e for e in shipped_entries() if e.name == name).source

    line, parsed = read_signature(source), parse_header(source).signature

    assert line.name == parsed.name
    assert [str(t).replace("[]", "") for t in line.inputs] == [str(s) for s in parsed.inputs]
    assert tuple(line.types.items()) == parsed.type_variables


_NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,5}", fullmatch=True)
_DIMS = st.lists(st.from_regex(r"[A-Z][0-9]?|[0-9]{1,3}", fullmatch=True), max_size=4).map(tuple)
_ARRAYS = st.builds(Term, _NAMES, st.sampled_from(["T", "float32", "int64"]), _DIMS)
_SCALARS = st.builds(Term, _NAMES, st.sampled_from(["float64", "int32"]), st.none())


@given(
    st.builds(
        SignatureLine,
        _NAMES,
        st.lists(st.one_of(_ARRAYS, _SCALARS), min_size=1, max_size=4).map(tuple),
        st.lists(_ARRAYS, min_size=1, max_size=3).map(tuple),
        st.just({"T": ("float32", "bfloat16")}),
    )
)
def test_text_and_back(line):
    assert read_signature(f"{line}\n//! f<<<1, 1>>>()") == line
