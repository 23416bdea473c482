"""Int arithmetic that overflows at given sizes, with a thread as witness."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmkernel.candidate.arguments import ArrayArgument
from llmkernel.candidate.candidate import parse_candidate
from llmkernel.candidate.int_overflow import overflows
from llmkernel.candidate.integers import Integer, integer_type, literal, operate
from llmkernel.devices.base import DeviceLimits

H200 = DeviceLimits("cuda", "NVIDIA H200", "sm_90a", 132)
HEADER = "//! f(x: float32[M, N]) -> y: float32[M, N]\n"
GRID = "//! f<<<min(M, 65536), 256>>>(x, y, M, N)\n"


def found(body, sizes=(65536, 65536), launch=GRID, before=""):
    text = (
        f"{HEADER}{launch}{before}__global__ void f(const float* x, float* y, int M, int N) {{\n{body}\n}}\n"
    )
    candidate = parse_candidate(text)
    plan = candidate.plan([ArrayArgument("float32", sizes, None, 256)], H200)
    return [(o.line, o.text, o.is_certain) for o in overflows(candidate, plan)]


ROW = "int row = blockIdx.x; "
OVERFLOWS = {
    "an index": (ROW + "y[row * N] = x[0];", "row * N"),
    "widened too late": (ROW + "y[(long long)(row * N)] = 0;", "row * N"),
    "a count of elements": ("int total = M * N; for (int i = 0; i < total; ++i) y[i] = 0;", "M * N"),
    "behind a guard that holds": (ROW + "if (row < M) y[row * N + threadIdx.x] = 0;", "row * N"),
    "in the last turn of a loop": ("for (int r = blockIdx.x; r < M; r += gridDim.x) y[r * N] = 0;", "r * N"),
    "in a loop that ends inclusively": ("for (int r = 1; r <= M - 1; r++) y[r * N] = 0;", "r * N"),
    "through a const": (ROW + "const int n = N, first = row * n; y[first] = 0;", "row * n"),
    "through min": ("int row = min((int)blockIdx.x, M - 1); y[row * N] = 0;", "row * N"),
    "a shift": ("int first = (int)blockIdx.x << 16; y[first] = 0;", "(int)blockIdx.x << 16"),
    "an unsigned index kept in an int": ("int i = blockIdx.x * N + threadIdx.x; y[i] = 0;", None),
}
FITS = {
    "widened": ROW + "y[(long long)row * N] = 0;",
    "static_cast": ROW + "y[static_cast<size_t>(row) * N] = 0;",
    "a long literal": ROW + "y[1LL * row * N] = 0;",
    "a long row": "long long row = blockIdx.x; y[row * N] = 0;",
    "unsigned": "y[blockIdx.x * N] = 0;",
    "behind a guard that fails": ROW + "if (row < 100) y[row * N] = 0;",
    "after the end": ROW + "if (row >= 100) return; y[row * N] = 0;",
    "in a loop without a turn": "for (int r = M; r < M; ++r) y[r * N] = 0;",
    "unknown": "int row = (int)x[0]; y[row * N] = 0;",
    "literals alone": "int big = 65536 * 65536; y[0] = big;",
    "a hash": "unsigned h = threadIdx.x * 2654435761u; y[0] = h;",
    "floats": "float row = blockIdx.x; y[0] = row * N;",
}


@pytest.mark.parametrize(("body", "text"), OVERFLOWS.values(), ids=OVERFLOWS.keys())
def test_an_overflow_is_found_with_its_line(body, text):
    seen = found(body)
    assert [(line, is_certain) for line, _, is_certain in seen] == [(4, True)] * len(seen) != []
    assert text is None or text in [t for _, t, _ in seen]


@pytest.mark.parametrize("body", [b for b, _ in OVERFLOWS.values()], ids=OVERFLOWS.keys())
def test_it_is_none_at_small_sizes(body):
    assert found(body, (1000, 1000)) == []


@pytest.mark.parametrize("body", FITS.values(), ids=FITS.keys())
def test_what_fits_or_is_not_known_is_not_found(body):
    assert found(body) == []


@pytest.mark.parametrize(
    "body",
    [
        ROW + "if (x[row] > 0) y[row * N] = 0;",
        ROW + "if (x[row] > 0) return; y[row * N] = 0;",
        ROW + "while (x[0] > 0) { y[row * N] = 0; }",
        ROW + "float v = x[0] > 0 ? x[row * N] : 0.0f;",
        ROW + "if (x[0] > 0 && y[row * N] > 0) return;",
    ],
)
def test_what_depends_on_data_is_possible_and_not_certain(body):
    assert found(body) == [(4, "row * N", False)]


def test_functions_and_templates_are_followed():
    before = "__device__ int at(int r, int c, int n) { return r * n + c; }\n"
    assert found(ROW + "y[at(row, 0, N)] = 0;", before=before) == [(3, "r * n", True)]
    long_one = before.replace("int at(int r", "long long at(long long r")
    assert found(ROW + "y[at(row, 0, N)] = 0;", before=long_one) == []
    for columns, expected in ((65536, [(4, "row * W", True)]), (8, [])):
        text = (
            f"{HEADER}//! f<T, {columns}><<<M, 32>>>(x, y)\n".replace("<T, ", "<")
            + "template <int W>\n__global__ void f(const float* x, float* y) { int row = blockIdx.x; y[row * W] = 0; }\n"
        )
        candidate = parse_candidate(text)
        plan = candidate.plan([ArrayArgument("float32", (65536, 64), None, 256)], H200)
        assert [(o.line, o.text, o.is_certain) for o in overflows(candidate, plan)] == expected


def test_a_stride_past_the_end_of_int_is_found():
    body = "for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < M * N; i += gridDim.x * blockDim.x) y[i] = 0;"
    ((line, text, is_certain),) = found(body, (32767, 65537))
    assert (line, is_certain) == (4, True)
    assert text.startswith("i +=")


def wrapped(value, kind):
    return ((value + (1 << 31)) % (1 << 32) - (1 << 31)) if kind[1] else value % (1 << 32)


@given(
    st.integers(-(2**31), 2**31 - 1), st.integers(-(2**31), 2**31 - 1), st.sampled_from("+-*"), st.booleans(), st.booleans()
)  # fmt: skip
def test_arithmetic_is_that_of_cxx(a, b, operator, is_first_signed, is_second_signed):
    kinds = [(32, is_first_signed), (32, is_second_signed)]
    left, right = (Integer(wrapped(v, k), *k) for v, k in zip((a, b), kinds, strict=True))
    result, has_overflown = operate(operator, left, right)
    is_signed = is_first_signed and is_second_signed
    exact = {"+": a + b, "-": a - b, "*": a * b}[operator]
    if is_signed:
        assert has_overflown == (not -(2**31) <= exact < 2**31)
        assert result is None if has_overflown else result.value == exact
    else:
        assert (result.value, result.is_signed) == (exact % 2**32, False)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("7", (7, 32, True)),
        ("4294967296", (4294967296, 64, True)),
        ("3000000000", (3000000000, 64, True)),
        ("7u", (7, 32, False)),
        ("0xffffffff", (0xFFFFFFFF, 32, False)),
        ("1LL", (1, 64, True)),
        ("010", (8, 32, True)),
        ("1'000", (1000, 32, True)),
        ("0", (0, 32, True)),
    ],
)
def test_literals_have_the_types_of_cxx(text, expected):
    number = literal(text)
    assert (number.value, number.bits, number.is_signed) == expected


def test_what_is_no_integer_is_none():
    assert [literal(t) for t in ("1.0f", "1e3", "0x1p3", ".5")] == [None] * 4
    assert integer_type("float") is None
    assert integer_type("unsigned long long") == (64, False)
    assert operate("/", Integer(1), Integer(0)) == (None, False)


@given(st.lists(st.sampled_from([*"(){}[]<>;,=+-*&!?:/%", "if", "for", "do", "while", "row", "int", "N", "M", "y", "float",
       "threadIdx", ".", "x", "return", "1", "0x", "+=", "++", "<<"]), max_size=40))  # fmt: skip
def test_any_body_is_followed(words):
    found(ROW + " ".join(words).replace("{", "").replace("}", "").replace("(", "").replace(")", ""))
