"""What docs/reference/launch-header.md says holds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from llmkernel.candidate.candidate import parse_candidate
from llmkernel.candidate.cxx_types import accepts_pointer
from llmkernel.candidate.expressions import FUNCTIONS
from llmkernel.candidate.header import parse_header
from llmkernel.candidate.rules import all_rules, check_rules
from llmkernel.problem.dtypes import DTYPES

PAGE = (Path(__file__).parents[3] / "docs/reference/launch-header.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```cuda\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def table(title: str) -> list[list[str]]:
    """Return the rows of the first table under a heading."""
    section = PAGE.split(f"## {title}\n", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in section.split("\n") if line.startswith("| ")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines[2:]]


def spans(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


@pytest.mark.parametrize("source", EXAMPLES, ids=lambda s: s.split("(")[0])
def test_examples_are_candidates(source: str) -> None:
    found = parse_candidate(source)
    check_rules(source)

    assert parse_header(str(found.header)) == found.header
    types = {name: choices[0] for name, choices in found.signature.type_variables}
    assert found.name_expressions(types)


def test_there_are_examples() -> None:
    assert len(EXAMPLES) == 4


def test_every_form_of_the_signature_parses() -> None:
    for written, _ in table("Signature"):
        form = spans(written)[0]
        where = " where T in {float32, float16}" if re.search(r"\bT\b", form) else ""
        if form.startswith("->"):
            text = f"//! f(a: float32[M, N], k: int32) {form}{where}"
        else:
            text = f"//! f(a: float32[M, N], {form}) -> out: float32[1]{where}"
        header = parse_header(text + "\n//! k<<<1, 1>>>()")
        assert parse_header(str(header)) == header


def test_the_table_of_types_is_the_table_in_use() -> None:
    rows = {
        spans(dtype)[0]: (spans(cxx), spans(vectors)) for dtype, cxx, vectors in table("dtypes and C++ types")
    }

    assert list(rows) == list(DTYPES)
    for dtype, (cxx, vectors) in rows.items():
        assert tuple(cxx) == DTYPES[dtype].cxx
        for vector in vectors:
            assert accepts_pointer(vector, dtype)


def test_every_rule_is_listed() -> None:
    check_rules(EXAMPLES[0])

    assert [(spans(name)[0], reason) for name, reason in table("What a candidate may not hold")] == [
        (rule.name, rule.reason) for rule in all_rules()
    ]


def test_every_function_of_expressions_is_described() -> None:
    section = PAGE.split("## Expressions\n", 1)[1].split("\n## ", 1)[0]

    for name in FUNCTIONS:
        assert f"`{name}(" in section
