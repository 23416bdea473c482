"""Reasoning between tags, however the text is cut into pieces."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from llmkernel.providers.thinking_tags import ThinkingTags


def split(pieces):
    tags = ThinkingTags()
    parts = [tags.feed(piece) for piece in pieces] + [tags.flush()]
    return "".join(p[0] for p in parts), "".join(p[1] for p in parts)


def cut(text, places):
    bounds = sorted({0, len(text), *(p % (len(text) + 1) for p in places)})
    return [text[a:b] for a, b in pairwise(bounds)]


PLAIN = st.text(st.sampled_from("<>/think abc\n"), max_size=30)
PLACES = st.lists(st.integers(0, 200), max_size=8)


@given(PLAIN.filter(lambda t: "</think>" not in t), PLAIN, PLACES)
def test_reasoning_and_reply_are_told_apart(thought, answer, places):
    text = f"\n<think>{thought}</think>{answer}"

    assert split(cut(text, places)) == (thought, answer)


@given(PLAIN.filter(lambda t: not t.lstrip().startswith("<think>")), PLACES)
def test_text_that_does_not_begin_with_the_tag_is_unchanged(text, places):
    assert split(cut(text, places)) == ("", text)


@given(PLAIN, PLACES)
def test_reasoning_that_never_ends_is_not_a_reply(thought, places):
    if "</think>" not in thought:
        assert split(cut(f"<think>{thought}", places)) == (thought, "")
