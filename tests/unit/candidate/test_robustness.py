"""Nothing but this package's own errors comes out of a parser, whatever goes in."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llmkernel.candidate.candidate import parse_candidate
from llmkernel.candidate.expressions import parse_expression
from llmkernel.candidate.header import parse_header
from llmkernel.candidate.lexer import tokenize
from llmkernel.candidate.parameters import parse_kernels
from llmkernel.candidate.reply import extract_source
from llmkernel.candidate.rules import check_rules
from llmkernel.errors import HeaderError, LLMKernelError
from tests.unit.candidate.strategies import headers, hostile_texts

PARSERS = (parse_expression, parse_header, parse_kernels, parse_candidate, extract_source, check_rules)
KERNEL = "//! f(x: float32[N]) -> y: float32[N]\n//! k<<<1, 2>>>(x, y)\n__global__ void k(const float* x, float* y) {}\n"


def outcome(parse: Callable[[str], object], text: str) -> LLMKernelError | None:
    """Return the package's own error, if there is one; any other error fails the test."""
    try:
        parse(text)
    except LLMKernelError as error:
        return error
    return None


@pytest.mark.parametrize("parse", PARSERS, ids=lambda p: p.__name__)
@settings(max_examples=150, deadline=None)
@given(text=hostile_texts)
def test_only_our_errors_come_out_of_hostile_text(parse: Callable[[str], object], text: str) -> None:
    error = outcome(parse, text)

    assert error is None or (error.what and error.rule)


@settings(max_examples=40, deadline=None)
@given(header=headers(), data=st.data())
def test_only_our_errors_come_out_of_a_damaged_header(header: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(header)))
    end = data.draw(st.integers(start, min(len(header), start + 12)))
    damaged = (
        header[:start]
        + data.draw(st.sampled_from(("", "(", ")", ">>>", "<", ",", "\n", ":", "x", "0")))
        + header[end:]
    )
    error = outcome(parse_header, damaged)

    if isinstance(error, HeaderError):
        assert 1 <= error.line <= damaged.count("\n") + 1
        assert error.column >= 0


@settings(max_examples=100, deadline=None)
@given(text=hostile_texts)
def test_a_kernel_with_hostile_text_behind_it(text: str) -> None:
    for parse in (parse_candidate, check_rules):
        outcome(parse, KERNEL + text)


@settings(max_examples=200, deadline=None)
@given(text=hostile_texts)
def test_tokens_stand_where_they_say(text: str) -> None:
    lines = text.split("\n")
    for token in tokenize(text):
        if token.kind in ("name", "number") and "\\" not in text:
            assert lines[token.line - 1][token.column - 1 :].startswith(token.text)


@pytest.mark.parametrize(
    "text",
    [
        "(" * 10_000 + "1" + ")" * 10_000,
        "(" * 1500 + "1" + ")" * 1500,
        "-" * 3000 + "1",
        "not " * 900 + "1",
        "1" + " + 1" * 900,
        "min(1, " * 500 + "1" + ")" * 500,
        "9" * 3999,
        "x[" * 500 + "]" * 500,
        "f'{1}'",
        "0x" + "f" * 3000,
        "lambda: 1",
        "(yield)",
        "[x for x in y]",
        "__import__('os').system('true')",
        "\x00",
        "a\\\nb",
    ],
    ids=lambda t: t[:12],
)
def test_expressions_that_break_parsers(text: str) -> None:
    with pytest.raises(HeaderError) as caught:
        parse_expression(text, line=7, column=3)
    assert caught.value.line == 7
    assert caught.value.column >= 3


def test_flat_chains_are_no_nesting() -> None:
    assert parse_expression("1 < " * 900 + "1").evaluate({}) is False
    assert parse_expression("1 and " * 600 + "1").evaluate({}) is True


@pytest.mark.parametrize(
    "text",
    [
        "//! " + "(" * 20_000,
        "//! f(" + "x: float32[N], " * 5000 + ")",
        "//! f(x: float32[N]) -> y: float32[N]\n" + "".join(f"//! {' ' * i}when N:\n" for i in range(900)),
        "//! f(x: float32[N]) -> y: float32[N]\n" + "//! k<<<1, (\n" + "//! 1 +\n" * 900,
        "template <" * 5_000,
        "{" * 20_000,
        "/*" * 10_000,
        '"' * 20_000,
        "\\\n" * 10_000,
        "#define A A A\n#define B A A\n" + "A B " * 5_000,
        "#define A0 x x\n" + "".join(f"#define A{i} A{i - 1} A{i - 1}\n" for i in range(1, 60)) + "A59",
        "```\n" * 5_000,
        "> " * 10_000,
        "1. " * 10_000 + "```",
        "using A = A;\nusing B = C; using C = B;\n__global__ void k(A a, B b) {}",
    ],
    ids=lambda t: repr(t[:20]),
)
def test_large_hostile_text(text: str) -> None:
    for parse in PARSERS:
        outcome(parse, text)
