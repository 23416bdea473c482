from __future__ import annotations

import textwrap

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llmkernel.candidate.reply import extract_source
from llmkernel.errors import ReplyError

SOURCE = """//! f(x: float32[N]) -> y: float32[N]
//! k<<<N, 1>>>(x, y)
__global__ void k(const float* x, float* y) {
    y[0] = x[0];
}
"""
OTHER = SOURCE.replace("x[0];", "2 * x[0];")
PLAIN = SOURCE.split("\n", 2)[2]


def fenced(source: str = SOURCE, tag: str = "cuda", fence: str = "```") -> str:
    return f"{fence}{tag}\n{source}{fence}\n"


@pytest.mark.parametrize(
    "reply",
    [
        fenced(),
        "\ufeff" + fenced(),
        fenced(tag="c++"),
        fenced(tag="cu"),
        fenced(tag="cpp"),
        fenced(tag="CUDA C++"),
        fenced(tag=""),
        fenced(tag='cuda title="kernel.cu" {.line-numbers}'),
        fenced(tag="{.cuda}"),
        fenced(tag="cuda   "),
        fenced(tag=" cuda"),
        fenced(fence="~~~"),
        fenced(fence="`````"),
        fenced().replace("\n", "\r\n"),
        "Here it is:\n\n" + fenced() + "\nThat is all. It uses `__global__ void k(...)`.",
        textwrap.indent(fenced(), "    "),
        "1. The kernel:\n\n" + textwrap.indent(fenced(), "   "),
        "- " + textwrap.indent(fenced(), "  ").lstrip(),
        textwrap.indent(fenced(), "> ", lambda _: True),
        "````markdown\nThe answer:\n" + fenced() + "````\n",
        "```markdown\nThe answer:\n" + fenced() + "```\n",
        fenced("import torch\n", "python") + fenced(),
        fenced() + "Usage:\n" + fenced("y = f(x)\n", "python") + fenced("Summary\n", ""),
        "A sketch:\n" + fenced(PLAIN) + "The whole file:\n" + fenced(),
        fenced() + "Once more:\n" + fenced(),
        fenced() + "Indented:\n" + textwrap.indent(fenced(), "  "),
        SOURCE,
        "The kernel:\n\n" + SOURCE + "\nIt runs one block.",
        "```\nsome note\n```\n\n" + SOURCE,
    ],
)
def test_the_source_is_found(reply: str) -> None:
    found = extract_source(reply)

    assert found.source == SOURCE
    assert not found.is_unclosed


def test_an_unclosed_fence_sets_a_flag() -> None:
    for reply in ("```cuda\n" + SOURCE, "Text\n\n~~~cu\n" + SOURCE.rstrip("\n")):
        found = extract_source(reply)

        assert found.source == SOURCE
        assert found.is_unclosed
        assert "not closed" in found.note


def test_a_fence_that_is_missing_before_the_next_block() -> None:
    found = extract_source("```cuda\n" + SOURCE + fenced("y = f(x)\n", "python") + "Done.\n")

    assert found.source == SOURCE
    assert found.is_unclosed
    assert [b.tag for b in found.blocks] == ["cuda", "python"]


def test_what_was_taken_is_said() -> None:
    found = extract_source(fenced("pip install x\n", "bash") + fenced() + fenced("y = f(x)\n", "python"))

    assert [b.tag for b in found.blocks] == ["bash", "cuda", "python"]
    assert found.chosen == 1
    assert found.note == "Took block 2 of 3: it holds the kernels."
    assert found.blocks[1].line == 4


def test_a_block_without_a_header_is_still_the_candidate() -> None:
    assert extract_source(fenced(PLAIN)).source == PLAIN


def test_an_inner_fence_in_a_comment_does_not_end_the_block() -> None:
    source = SOURCE + "/*\n   ~~~\n   table\n   ~~~\n*/\n"

    assert extract_source(fenced(source)).source.startswith(SOURCE)


def test_two_candidates_are_not_chosen_from() -> None:
    with pytest.raises(ReplyError, match="2 different candidates") as caught:
        extract_source(fenced() + "Or, faster:\n" + fenced(OTHER))
    assert "line 1, line 9" in (caught.value.received or "")
    assert "exactly one" in (caught.value.next_step or "")


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        ("", "an empty reply"),
        ("  \n", "an empty reply"),
        ("I cannot do that.", "17 characters of text without a fenced block"),
        (fenced("import os\nos.system('rm -rf /')\n", "python"), "python (2 lines)"),
        ("Use `__global__ void k(float* x)` for this.", "without a fenced block"),
        (fenced("int main() {}\n", "c++") + fenced("x\n", ""), "c++ (1 lines), untagged (1 lines)"),
    ],
)
def test_no_source_says_what_was_seen(reply: str, words: str) -> None:
    with pytest.raises(ReplyError, match="no CUDA source") as caught:
        extract_source(reply)
    assert words in (caught.value.received or "")


@settings(max_examples=150, deadline=None)
@given(
    before=st.text(st.characters(exclude_characters="`~", exclude_categories=["Cs"])).filter(
        lambda t: "__global__" not in t
    ),
    fence=st.sampled_from(("```", "````", "~~~", "~~~~~~")),
    tag=st.sampled_from(("", "cuda", "c++", "cpp hl=1", "cu ")),
    indent=st.integers(0, 4),
    end=st.sampled_from(("\n", "\r\n")),
)
def test_prose_and_fence_styles_do_not_matter(
    before: str, fence: str, tag: str, indent: int, end: str
) -> None:
    block = textwrap.indent(f"{fence}{tag}\n{SOURCE}{fence}\n", " " * indent)
    reply = (before + "\n" + block + "Done.\n").replace("\n", end)

    assert extract_source(reply).source == SOURCE
