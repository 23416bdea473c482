from __future__ import annotations

import ast
import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmkernel.errors import UsageError
from llmkernel.magics.ask import AskMagics
from llmkernel.magics.ask_lines import AskLines
from llmkernel.magics.ask_options import parse_ask, split_ask_line
from llmkernel.magics.parsing import options_of, parser_of

PARSER = parser_of(AskMagics.ask)
OPTIONS = set(options_of(PARSER))


def parse(line, cell=None):
    return parse_ask(AskMagics.ask, line, cell)


@pytest.mark.parametrize(
    "question",
    [
        "why?",
        "why is x nan?",
        "what's wrong with 'x' and \"y",
        "is {x} or {{y}} at $HOME \\ fine?",
        "- why?",
        "-1 or 1?",
        "is a -- b fine?",
    ],
)
def test_a_question_is_taken_as_it_stands(question):
    assert parse(question).question == question
    assert parse(f"--error --cells 2 {question}").question == question


@given(st.text().map(lambda text: " ".join(text.split())))
def test_behind_the_dashes_everything_is_question(question):
    assert parse(f"--fix -- {question}").question == question


@given(
    st.text().filter(
        lambda t: not t.strip().startswith("--") and not OPTIONS & {w.partition("=")[0] for w in t.split()}
    )
)
def test_a_line_without_options_is_the_question(line):
    assert split_ask_line(PARSER, line) == ("", line.strip())


words = st.sampled_from(
    [*sorted(OPTIONS), "--", "x", "3", "'", '"', "=", "--context=", "--x", "why?", "-O", '"a b"']
)


@given(st.lists(words | st.text(max_size=8)).map(" ".join))
def test_any_line_is_parsed_or_refused(line):
    with contextlib.suppress(UsageError):
        parse(line)


def test_the_body_follows_the_line():
    assert parse("why is it slow?", "  Rows are long.\n").question == "why is it slow?\n\nRows are long."
    assert parse("", "\nWhy?\n").question == "Why?"
    assert parse("why?", "\n").question == "why?"
    assert parse("--fix", "--error is text here\n").question == "--error is text here"


def test_names_are_joined_by_commas_and_may_be_quoted():
    assert parse('--context "x, model.weight" --context=y,x why?').context == ("x", "model.weight", "y")


@pytest.mark.parametrize("names", ["x[0]", "f()", "1", "'x y'"])
def test_nothing_in_the_context_is_evaluated(names):
    with pytest.raises(UsageError, match="names"):
        parse(f"--context={names} why?")


@pytest.mark.parametrize(
    ("line", "what", "help_"),
    [
        ("--eror why?", "no option --eror", "Did you mean --error"),
        ("why --error?", None, None),
        ("why is it so --error", "within the question", "front"),
        ("--fix --code now", "exclude", "one"),
        ("--cells none why?", "whole number", "lists"),
        ("--model", "needs a value", "--model="),
        ("--context", "needs a value", "--context="),
    ],
)
def test_what_cannot_be_meant_is_explained(line, what, help_):
    if what is None:
        assert parse(line).question == line
        return
    with pytest.raises(UsageError) as caught:
        parse(line)
    assert what in str(caught.value)
    assert help_ in str(caught.value)


def test_the_error_is_sent_left_out_or_decided_later():
    assert [parse(f"{o} why?").error for o in ("", "--error", "--no-error")] == [None, True, False]


def test_a_key_on_the_line_is_not_repeated():
    with pytest.raises(UsageError) as caught:
        parse("--x sk-ant-" + "a1B2" * 8)
    assert "a1B2" not in str(caught.value)


# The transformer of the line magic.


@pytest.fixture(scope="module")
def transform():
    from .conftest import make_shell

    shell = make_shell()
    shell.extension_manager.load_extension("llmkernel")
    return shell.transform_cell


def calls(code):
    """Name, line and body of every magic that `code` calls."""
    found = [
        n for n in ast.walk(ast.parse(code)) if isinstance(n, ast.Call) and "magic" in ast.unparse(n.func)
    ]
    return [tuple(ast.literal_eval(argument) for argument in call.args) for call in found]


@pytest.mark.parametrize(
    "line", ["why is x nan?", "what's it?", 'a "quote', "x??", "--fix", "what is f(", "`x`?", ""]
)
def test_a_line_reaches_the_magic(transform, line):
    assert calls(transform(f"%ask {line}")) == [("ask", line)]
    assert calls(transform(f"x = 1\n\nif x:\n    %ask {line}\nx = 2\n")) == [("ask", line)]
    assert calls(transform(f"answer = %ask {line}\n")) == [("ask", line)]


@given(st.text(st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp"))))
def test_any_line_reaches_the_magic(transform, line):
    assert calls(transform(f"%ask  {line}\ny = 1")) == [("ask", line.strip())]


@pytest.mark.parametrize("line", ["why?", "--error what's it?", ""])
def test_a_cell_without_a_body_reaches_the_magic(transform, line):
    assert calls(transform(f"%%ask {line}")) == [("ask", line, "\n")]


def test_a_cell_above_which_something_stands_is_explained(transform):
    with pytest.raises(UsageError, match="first line"):
        transform("# a comment\n%%ask why?\n")


@pytest.mark.parametrize(
    "cell",
    [
        's = """\n%ask why\n"""\n',
        's = """why?\n%ask why\n"""\n',
        "x = (1\n%ask\n)\n",
        "y = 7 \\\n%ask\n",
        "print('%ask why?')\n",
        "# %ask why?\n",
    ],
)
def test_what_only_looks_like_the_magic_is_left_alone(transform, cell):
    assert transform(cell).strip() == cell.strip()


@given(st.text().filter(lambda text: "%ask" not in text))
def test_cells_without_the_magic_are_left_alone(cell):
    lines = cell.splitlines(keepends=True)

    assert AskLines()(lines) == lines


def test_other_magics_bodies_are_left_alone(transform):
    assert calls(transform("%%bash\n%ask why\n")) == [("bash", "", "%ask why\n")]
    assert calls(transform("%time f()\n!echo it's\nx?\n%ask what's up?\n"))[-1] == ("ask", "what's up?")


@pytest.mark.parametrize("cell", ["%ask?", "%ask??", "%%ask?"])
def test_the_question_mark_alone_asks_for_help(transform, cell):
    assert "pinfo" in transform(cell)


def test_a_terminal_does_not_wait_for_an_apostrophe(shell):
    assert shell.input_transformer_manager.check_complete("%ask what's wrong?")[0] == "complete"
