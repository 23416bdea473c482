from __future__ import annotations

import mistune
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from llmkernel.display.safe_markdown import safe_markdown


def kinds(tokens):
    for token in tokens:
        yield token["type"]
        yield from kinds(token.get("children", []))


def parsed(text):
    return mistune.create_markdown(renderer="ast")(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("![x](https://e.example/?k=1)", "!&#91;x](https://e.example/?k=1)"),
        ("a <img src=x onerror=y> b", "a &lt;img src=x onerror=y> b"),
        ("`<b>` and `` ` <i> `` and 1 < 2", "`<b>` and `` ` <i> `` and 1 < 2"),
        ("```cuda\nf<<<1, 2>>>(x);\n```\n<b>", "```cuda\nf<<<1, 2>>>(x);\n```\n&lt;b>"),
        ("```\nopen <b>", "```\nopen <b>\n```"),
        ("````md\n```\n<b>\n```\n````\n<b>", "````md\n```\n<b>\n```\n````\n&lt;b>"),
        ("~~~py x\n```\n<b>", "````py\n```\n<b>\n````"),
        ("- a\n  ```\n  if x:\n    y\n  ```\n- b", "- a\n```\nif x:\n  y\n```\n- b"),
        ("> ```c\n> <b>\n> ```", "```c\n<b>\n```"),
        ("$x < y$ | **bold**", "$x < y$ | **bold**"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("it`s <b>`", "it`s <b>`"),
        ("a ` b\n`<b>`", "a &#96; b\n`<b>`"),
        ("\\`<b>`", "&#96;&lt;b>&#96;"),
        ("\\![a](b)", "\\!&#91;a](b)"),
    ],
)
def test_nothing_is_loaded_and_code_stays_code(text, shown):
    assert safe_markdown(text) == shown


HOSTILE = (
    *(
        "`",
        "``",
        "```",
        "~~~",
        "<img src=x>",
        "</b>",
        "<!-- ",
        "![a](b)",
        "[a]: b",
        "!",
        "[",
        "\n",
        "\n\n",
        "    ",
    ),
    *("- ", "> ", "1. ", "\\", "a", " ", "<script>", "<a@b.example>", "|", "$"),
)


@given(st.lists(st.sampled_from(HOSTILE) | st.text(max_size=3), max_size=25).map("".join))
@example("> ```\n<b>")
@example("    ```\n\n<b>\n")
@example("```\n    ```\n<b>\n```\n<b>")
@example("a ` b\n\n- `<b>`")
def test_no_text_makes_html_or_an_image(text):
    assert not set(kinds(parsed(safe_markdown(text)))) & {"block_html", "inline_html", "image"}


@given(
    st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cf", "Zl", "Zp"))),
    st.sampled_from(["", "cuda", "python"]),
)
def test_a_code_block_stays_what_it_is(code, tag):
    found = [
        t for t in parsed(safe_markdown(f"Text\n~~~~{tag}\n{code}\n~~~~\nText")) if t["type"] == "block_code"
    ]

    assert [t["raw"] for t in found] == ([code + "\n"] if code else ["\n"])
