"""Nothing but a parser's own error comes out of it, whatever goes in."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz.targets import Target, all_targets

TARGETS = {target.name: target for target in all_targets()}
TEXTS = [t for t in TARGETS.values() if not t.is_binary]


def hostile(target: Target) -> st.SearchStrategy[str]:
    """Pieces of what the parser reads in any order, any text, and whole texts with a part replaced."""
    pieces = st.lists(st.sampled_from(target.words) | st.text(max_size=3), max_size=40).map("".join)
    if not target.examples:
        return pieces | st.text()
    return pieces | st.text() | damaged(st.sampled_from(target.examples), pieces)


@st.composite
def damaged(draw: st.DrawFn, texts: st.SearchStrategy[str], pieces: st.SearchStrategy[str]) -> str:
    text = draw(texts)
    start = draw(st.integers(0, len(text)))
    end = draw(st.integers(start, min(len(text), start + 20)))
    return text[:start] + draw(pieces) + text[end:]


@pytest.mark.parametrize("target", TEXTS, ids=lambda t: t.name)
@settings(max_examples=40)
@given(data=st.data())
def test_only_its_own_error_comes_out(target: Target, data: st.DataObject) -> None:
    error = target(data.draw(hostile(target)))

    assert error is None or str(error)


# Of the gallery some are refused, and of a magic's options each magic has its own.
READS_ITS_EXAMPLES = ("reply", "header", "expression", "lexer", "record", "output", "notebook")


@pytest.mark.parametrize("name", READS_ITS_EXAMPLES)
def test_its_examples_are_read(name: str) -> None:
    errors = [TARGETS[name](example) for example in TARGETS[name].examples]
    assert errors.count(None) > len(errors) * 0.9


# What took quadratic time once, at a size at which it would take minutes again.
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("reply", "__global__ " * 90_000),
        ("reply", "~~~\n```cuda\n" * 80_000),
        ("reply", "```cuda\n" + "__global__ void k() {}\n" * 20_000 + "```x\n```\n" * 20_000),
        ("redaction", "https://a:b@c " * 70_000),
        ("redaction", "eyJaaaaaaaaaa-" * 70_000),
        ("redaction", "T3BlbkFJ " + "sk-a1" * 200_000),
        ("redaction", f"ibm_cloud_api_key{' ' * 200_000}a1a1a1a1a1a1a1a1" * 4),
        ("cpu preprocessing", "extern __shared__ float s[];" * 12_000),
        ("lines", "--shapes M=3 " * 80_000),
    ],
    ids=lambda value: value[:12].strip(),
)
def test_a_megabyte_is_no_matter(name: str, text: str) -> None:
    TARGETS[name](text)
