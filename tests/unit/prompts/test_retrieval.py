"""Which guides a prompt carries."""

from __future__ import annotations

import pytest

from llmkernel.prompts.retrieval import MAX_GUIDES, choose_guides, guides
from llmkernel.prompts.text import estimate_tokens


@pytest.mark.parametrize(
    ("task", "guide"),
    [
        ("softmax over the last axis", "softmax"),
        ("def layer_norm(x, eps): return x", "normalization"),
        ("C = A @ B in bfloat16", "matmul"),
        ("np.cumsum(x, axis=1)", "scan"),
        ("return x.T", "transpose"),
        ("one step of the heat equation with periodic boundary", "stencil"),
        ("np.bincount(x, minlength=256)", "histogram"),
        ("causal attention with 32 heads", "attention"),
        ("row_sum of x", "reductions"),
        ("gelu(x + bias)", "elementwise"),
    ],
)
def test_words_choose(task, guide):
    assert guide in [g.name for g in choose_guides(task, "sm_90a")]


@pytest.mark.parametrize(
    ("arch", "present", "absent"),
    [
        ("sm_90a", "hopper", "ampere"),
        ("sm_90", "hopper", "ampere"),
        ("sm_86", "ampere", "hopper"),
        ("host", "numerics", "hopper"),
    ],
)
def test_the_architecture_chooses(arch, present, absent):
    names = [g.name for g in choose_guides("softmax", arch)]

    assert present in names
    assert absent not in names


def test_part_of_a_word_does_not_choose():
    assert "reductions" not in [g.name for g in choose_guides("maximal summary meander", "host")]


def test_an_intent_full_of_keywords_gets_few_guides():
    everything = " ".join(k for g in guides() for k in g.keywords)

    chosen = [g for g in choose_guides(everything, "sm_90a") if not g.archs]

    assert len(chosen) == MAX_GUIDES


def test_guides_are_short():
    for guide in guides():
        assert estimate_tokens(guide.text) < 700, guide.name
        assert guide.text.startswith("# ")
        assert guide.keywords or guide.archs
