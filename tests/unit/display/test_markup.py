"""Sentences as HTML."""

from __future__ import annotations

import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmkernel.display.clean import clean
from llmkernel.display.markup import prose
from llmkernel.display.page import Page, byline

from .examples import PASSED


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("`y` is <wrong>", "<code>y</code> is &lt;wrong&gt;"),
        ("`x` and `a<b>`", "<code>x</code> and <code>a&lt;b&gt;</code>"),
        ("one ` alone", "one ` alone"),
        ("nothing in ``", "nothing in ``"),
        ("", ""),
    ],
)
def test_what_stands_between_backticks_is_code(text, shown):
    assert prose(text) == shown


@given(st.text(alphabet=st.sampled_from("`<&a ")))
def test_nothing_but_backticks_is_lost(text):
    words = html.unescape(re.sub(r"</?code>", "", prose(text)))

    assert words.replace("`", "") == clean(text).replace("`", "")


@pytest.mark.parametrize("provider", ["claude", "claude · claude-opus-5-5"])
def test_the_model_is_named_once(provider):
    line = byline(Page(PASSED, provider=provider, model="claude-opus-5-5"))

    assert line.count("claude-opus-5-5") == 1
    assert line.count("claude · claude-opus-5-5") == 1
