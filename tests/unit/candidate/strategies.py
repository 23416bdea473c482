"""Hypothesis strategies for expressions, headers and hostile text."""

from __future__ import annotations

from hypothesis import strategies as st

NAMES = ("M", "N", "k", "chunk")
_ATOMS = st.one_of(
    st.sampled_from(NAMES),
    st.integers(0, 2**40).map(str),
    st.just("num_sms"),
    st.sampled_from(("sizeof(T)", "sizeof(float32)", "aligned(x, 16)", "tma_ok(x)", "v.stride(0)")),
)


def _combine(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    binary = st.tuples(
        inner,
        st.sampled_from(("+", "-", "*", "//", "%", "<", "<=", "==", "!=", ">", ">=", "and", "or")),
        inner,
    ).map(lambda t: f"({t[0]}) {t[1]} ({t[2]})")
    calls = st.tuples(st.sampled_from(("min", "max", "ceil_div")), inner, inner).map(
        lambda t: f"{t[0]}({t[1]}, {t[2]})"
    )
    unary = st.tuples(st.sampled_from(("-", "+", "not ")), inner).map(lambda t: f"{t[0]}({t[1]})")
    chained = st.tuples(inner, inner, inner).map(lambda t: f"({t[0]}) < ({t[1]}) <= ({t[2]})")
    return st.one_of(binary, calls, unary, chained)


expression_texts = st.recursive(_ATOMS, _combine, max_leaves=12)
_short = st.recursive(_ATOMS, _combine, max_leaves=3)

_launches = st.tuples(
    st.sampled_from(("k<T>", "k<T, 32>", "ns::k", "k<float, true>", "plain")),
    _short,
    st.lists(_short, min_size=1, max_size=3),
    st.one_of(st.none(), _short),
    st.sampled_from(("", ", cluster=(8, 1, 1)", ", cooperative", ", cluster=2, cooperative")),
    st.lists(
        st.one_of(
            _short,
            st.sampled_from(
                ("x", "y", "part", "eps", "k", "-1.5", "1e-5f", "tensor_map(x, box=(64, 32), swizzle=128)")
            ),
            _short.map(lambda e: f"x + ({e})"),
        ),
        max_size=4,
    ),
).map(
    lambda t: (
        f"{t[0]}<<<{t[1]}, ({', '.join(t[2])}){'' if t[3] is None else ', ' + t[3]}{t[4]}>>>({', '.join(t[5])})"
    )
)
_simple = st.one_of(_launches, _short.map(lambda e: f"require {e}"), st.just("swap(y, part)"))


def _indent(lines: list[str]) -> list[str]:
    return ["    " + line for line in lines]


@st.composite
def _blocks(draw: st.DrawFn, depth: int) -> list[str]:
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(("simple", "when", "repeat") if depth else ("simple",)))
        if kind == "simple":
            lines.append(draw(_simple))
        elif kind == "repeat":
            lines.append(f"repeat {draw(_short)}:")
            lines += _indent(draw(_blocks(depth - 1)))
        else:
            for _ in range(draw(st.integers(1, 2))):
                lines.append(f"when {draw(_short)}:")
                lines += _indent(draw(_blocks(depth - 1)))
            lines.append("otherwise:")
            lines += _indent(draw(_blocks(depth - 1)))
    return lines


SIGNATURE = (
    "f(x: T[M, N], inout z: float32[M], v: strided T[N], k: int32, eps: float32, b: bool, s: int8[])"
    " -> (y: T[M, N] = 0, n: int64)    where T in {float32, float16}"
)


@st.composite
def headers(draw: st.DrawFn) -> str:
    """Text of a launch header that parses."""
    lines = [
        SIGNATURE,
        f"let chunk = {draw(st.integers(0, 9))} * N",
        "scratch part: T[M, N], sums: float32[chunk] = 0",
    ]
    lines += draw(_blocks(2))
    return "".join(f"//! {line}\n" for line in lines)


_FRAGMENTS = st.sampled_from(
    (
        *(
            "//! ",
            "//!",
            "\n",
            "\r\n",
            " ",
            "    ",
            "(",
            ")",
            "[",
            "]",
            "{",
            "}",
            "<<<",
            ">>>",
            "<",
            ">",
            ",",
            ":",
            "::",
        ),
        *(
            "->",
            "=",
            "= 0",
            "let ",
            "require ",
            "scratch ",
            "when ",
            "otherwise:",
            "repeat ",
            "swap(",
            "where ",
            " in ",
        ),
        *(
            "float32",
            "T",
            "x",
            "y",
            "N",
            "f(x: float32[N]) -> y: float32[N]",
            "k<<<1, 2>>>(x)",
            "tensor_map(",
            "box=",
        ),
        *(
            "inout ",
            "strided ",
            "1",
            "0",
            "99999999999999999999",
            "//",
            "%",
            "**",
            "/",
            "and ",
            "not ",
            "sizeof(",
            "\x00",
        ),
        *(
            "__global__ ",
            "void k(",
            "float* x",
            "const ",
            "template <typename T> ",
            "namespace a ",
            'extern "C" ',
            "#define A",
        ),
        *(
            "/*",
            "*/",
            "//",
            '"',
            "'",
            'R"(',
            "\\\n",
            "\\",
            "#",
            "#include <x>",
            "asm(",
            "[[",
            "]]",
            "__attribute__((",
            "é",
        ),
        *(
            "```",
            "```cuda\n",
            "~~~",
            "> ",
            "- ",
            "1. ",
            "import os",
            "using X = ",
            "typedef ",
            ";",
            "1.5f",
            "\u2028",
            "\x0c",
        ),
    )
)
hostile_texts = st.one_of(st.text(max_size=200), st.lists(_FRAGMENTS, max_size=60).map("".join))
