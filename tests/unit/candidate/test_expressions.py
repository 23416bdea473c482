from __future__ import annotations

import copy
import pickle

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from llmkernel.candidate.expressions import INT64_MAX, INT64_MIN, Fact, parse_expression
from llmkernel.errors import HeaderError
from tests.unit.candidate.strategies import NAMES, expression_texts

ENVIRONMENT = {
    **dict.fromkeys(NAMES, 3),
    "num_sms": 132,
    "sizeof(T)": 2,
    "sizeof(float32)": 4,
    "address(x)": 32,
    "tma_ok(x)": True,
    "v.stride(0)": 5,
}


@settings(max_examples=150, deadline=None)
@given(text=expression_texts)
def test_canonical_text_parses_to_an_equal_expression(text: str) -> None:
    expression = parse_expression(text)
    again = parse_expression(str(expression))

    assert again == expression
    assert hash(again) == hash(expression)
    assert again.names == expression.names
    assert again.facts == expression.facts
    assert str(again) == str(expression)


def ceil_div(a: int, b: int) -> int:
    return -(-a // b)


@settings(max_examples=150, deadline=None)
@given(text=expression_texts, values=st.lists(st.integers(-(2**20), 2**20), min_size=4, max_size=4))
def test_values_are_pythons_or_an_error(text: str, values: list[int]) -> None:
    assume(not any(word in text for word in ("sizeof", "aligned", "tma_ok", "stride", " and ", " or ")))
    environment = {**ENVIRONMENT, **dict(zip(NAMES, values, strict=True))}
    names = {"ceil_div": ceil_div, "min": min, "max": max, "__builtins__": {}}
    expression = parse_expression(text)
    try:
        expected = eval(text, names, dict(environment))
    except ZeroDivisionError:
        expected = None
    try:
        actual = expression.evaluate(environment)
    except HeaderError:
        # Intermediate values beyond 64 bits are errors too, so only small results must agree.
        return
    if expected is not None:
        assert actual == expected
        assert INT64_MIN <= actual <= INT64_MAX


@pytest.mark.parametrize(
    ("text", "canonical", "value"),
    [
        ("8*ceil_div(N,64)", "8 * ceil_div(N, 64)", 8),
        ("(M)", "M", 3),
        ("((M+N))*2", "(M + N) * 2", 12),
        ("M-(N-k)", "M - (N - k)", 3),
        ("(M-N)-k", "M - N - k", -3),
        ("-7//2", "-7 // 2", -4),
        ("-7%4", "-7 % 4", 1),
        ("0x10 + 1_0", "16 + 10", 26),
        ("2<M<=3", "2 < M <= 3", True),
        ("not(M<2)and(N or k)", "not M < 2 and (N or k)", True),
        ("min(M,N,2)+max(1,4)", "min(M, N, 2) + max(1, 4)", 6),
        ("aligned( x ,16 )", "aligned(x, 16)", True),
        ("aligned(x, 32 * sizeof(T))", "aligned(x, 32 * sizeof(T))", False),
        ("tma_ok(x)", "tma_ok(x)", True),
        ("x.stride( 0 )*2", "x.stride(0) * 2", 14),
        ("2 * (M > 1)", "2 * (M > 1)", 2),
        ("true", "True", True),
        ("num_sms//2", "num_sms // 2", 66),
        ("  M +\n N", "M + N", 6),
    ],
)
def test_canonical_text_and_value(text: str, canonical: str, value: int) -> None:
    expression = parse_expression(text)

    assert str(expression) == canonical
    actual = expression.evaluate({**ENVIRONMENT, "x.stride(0)": 7})
    assert actual == value
    assert isinstance(actual, bool) == isinstance(value, bool)


def test_names_and_facts() -> None:
    expression = parse_expression("M * sizeof(T) + x.stride(1) + aligned(y, 16) + tma_ok(z) + num_sms")

    assert expression.names == {"M", "num_sms"}
    assert expression.facts == {
        Fact("sizeof", "T"),
        Fact("stride", "x", 1),
        Fact("address", "y"),
        Fact("tma_ok", "z"),
    }
    assert parse_expression("M").is_name
    assert not parse_expression("M + 0").is_name
    assert not parse_expression("True").is_name


@pytest.mark.parametrize(
    ("text", "column", "words"),
    [
        ("a / b", 1, "`//`"),
        ("1 + a ** 2", 5, "product"),
        ("a << 2", 1, "power of two"),
        ("a & b", 1, "not available"),
        ("1 + x.shape", 5, "stride"),
        ("x[0]", 1, "array elements"),
        ("1.5", 1, "not an integer"),
        ("1 + 'a'", 5, "not an integer"),
        ("99999999999999999999", 1, "64 bits"),
        ("a if b else c", 1, "when"),
        ("2 + f(a)", 5, "not a function"),
        ("mni(a, b)", 1, "did you mean `min`"),
        ("min(a)", 1, "two or more"),
        ("ceil_div(a)", 1, "2 argument"),
        ("sizeof(a + b)", 8, "name of a type"),
        ("aligned(1, 16)", 9, "name of an array"),
        ("x.stride(k)", 1, "integer literal"),
        ("x.stride()", 1, "integer literal"),
        ("min(a, key=b)", 1, "plain arguments"),
        ("min(*a)", 1, "plain arguments"),
        ("a in b", 1, "not available"),
        ("a is b", 1, "not available"),
        ("~a", 1, "not available"),
        ("a && b", 3, "`and`"),
        ("!a", 1, "`not`"),
        ("a ? b : c", 3, "when"),
        ("min", 1, "function"),
        ("(a := 3)", 2, "cannot stand"),
        ("a; b", 2, "not an expression"),
        ("a # b", 3, "unexpected character"),
        ("ä", 1, "character"),
        ("  ", 1, "missing"),
        ("(a", 1, "not an expression"),
        ("None", 1, "not an integer"),
    ],
)
def test_what_is_refused_and_where(text: str, column: int, words: str) -> None:
    with pytest.raises(HeaderError) as caught:
        parse_expression(text, line=5, column=11)

    assert caught.value.line == 5
    assert caught.value.column == 10 + column
    assert words.lower() in str(caught.value).lower()


@pytest.mark.parametrize(
    ("text", "environment", "words"),
    [
        ("M * N", {"M": 2**40, "N": 2**40}, "does not fit in 64 bits"),
        ("M * N - M * N", {"M": 2**40, "N": 2**40}, "does not fit in 64 bits"),
        ("M + 1", {"M": INT64_MAX}, "does not fit"),
        ("-M", {"M": INT64_MIN}, "does not fit"),
        ("M // N", {"M": INT64_MIN, "N": -1}, "does not fit"),
        ("ceil_div(M, N)", {"M": 1, "N": 0}, "division by zero"),
        ("M // N", {"M": 1, "N": 0}, "division by zero"),
        ("M % N", {"M": 1, "N": 0}, "modulo by zero"),
        ("aligned(x, M)", {"address(x)": 0, "M": 12}, "power of two"),
        ("aligned(x, M)", {"address(x)": 0, "M": 8192}, "power of two"),
        ("M + N", {"M": 1}, "`N` has no value"),
        ("sizeof(T)", {}, "`sizeof(T)` has no value"),
    ],
)
def test_evaluation_never_wraps(text: str, environment: dict[str, int], words: str) -> None:
    expression = parse_expression(text, line=4, column=9)

    with pytest.raises(HeaderError) as caught:
        expression.evaluate(environment)

    assert (caught.value.line, caught.value.column) == (4, 9)
    assert words in str(caught.value)


def test_an_untaken_operand_is_not_evaluated() -> None:
    assert parse_expression("N != 0 and M // N > 1").evaluate({"M": 4, "N": 0}) is False
    assert parse_expression("N == 0 or M // N > 1").evaluate({"M": 4, "N": 0}) is True


def test_expressions_survive_pickle_and_copy() -> None:
    expression = parse_expression("2 * M + sizeof(T)", line=3, column=4)

    for other in (pickle.loads(pickle.dumps(expression)), copy.deepcopy(expression)):
        assert other == expression
        assert (other.line, other.column) == (3, 4)
        assert other.evaluate({"M": 5, "sizeof(T)": 4}) == 14


def test_ceil_div_rounds_up() -> None:
    expression = parse_expression("ceil_div(M, 8)")

    assert [expression.evaluate({"M": m}) for m in (0, 1, 8, 9)] == [0, 1, 1, 2]
