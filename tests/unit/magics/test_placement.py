from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmkernel.errors import UsageError

from .conftest import make_shell


@pytest.fixture(scope="module")
def transform():
    shell = make_shell()
    shell.extension_manager.load_extension("llmkernel")
    return shell.transform_cell


def call_of(code):
    """Return name, line and body of the cell-magic call that `code` is."""
    call = ast.parse(code).body[0].value
    return tuple(ast.literal_eval(argument) for argument in call.args)


BODY = (
    '  braces {x} {{y}}, $HOME, `ls`, !ls, %magic\n\n   \n\t\'quotes\' """three""" \\ 日本語 🙂 е́\n>>> x?\n'
)


def test_the_body_is_taken_verbatim(transform):
    assert call_of(transform("%%cuda_from f --quiet\n" + BODY)) == ("cuda_from", "f --quiet", BODY)


@given(st.text())
def test_any_body_is_taken_verbatim(transform, body):
    body += "\n"
    assert call_of(transform("%%cuda_from f\n" + body)) == ("cuda_from", "f", body)


@pytest.mark.parametrize("cell", ["\n\n%%cuda_from f\nx\n", "  %%cuda_from  f \nx\n", "%%cuda_from\tf\nx\n"])
def test_blanks_around_the_magic_do_not_matter(transform, cell):
    assert call_of(transform(cell)) == ("cuda_from", "f", "x\n")


@pytest.mark.parametrize("cell", ["%%cuda_from f", "%%cuda_from f\n", "%%cuda_from"])
def test_an_empty_body_reaches_the_magic(transform, cell):
    name, _, body = call_of(transform(cell))
    assert (name, body.strip()) == ("cuda_from", "")


@pytest.mark.parametrize(
    "above",
    [
        "# a comment\n",
        "x = 1\n",
        "# one\n\n# two\n",
        '"""text"""\n',
        "%matplotlib inline\n",
        "!ls\n",
        "if x:\n",
    ],
)
def test_a_magic_below_something_else_is_explained(transform, above):
    with pytest.raises(UsageError, match="first line"):
        transform(above + "%%cuda_from f\nx\n")


@pytest.mark.parametrize(
    "cell",
    [
        's = """\n%%cuda_from f\n"""\n',
        "x = 1\n",
        "# %%cuda_from f\n",
        "print('%%cuda_from f')\n",
        "\n",
        "",
    ],
)
def test_other_cells_are_left_alone(transform, cell):
    assert transform(cell).strip() == cell.strip()


@pytest.mark.parametrize(
    "cell", ["%%time\n%%cuda_from f\nx\n", "%%python\nx\n", "%%bash\n# a\n%%cuda_from f\n"]
)
def test_other_magics_are_left_alone(transform, cell):
    assert call_of(transform(cell))[0] != "cuda_from"


@pytest.mark.parametrize(
    ("cell", "meant"),
    [
        ("%%cuda-from f\nx\n", "%%cuda_from"),
        ("%%cudafrom f\nx\n", "%%cuda_from"),
        ("%%cuda_form f\nx\n", "%%cuda_from"),
        ("%%CUDA_FROM f\nx\n", "%%cuda_from"),
        ("%% cuda_from f\nx\n", "%%cuda_from"),
        ("%%Cuda f\nx\n", "%%cuda"),
        ("%%ASK\nwhy\n", "%%ask"),
        ("%Ask why?\n", "%ask"),
        ("%kernel list\n", "%kernels"),
        ("%llm-usage\n", "%llm_usage"),
    ],
)
def test_a_misspelt_magic_is_named(transform, cell, meant):
    with pytest.raises(UsageError) as caught:
        transform(cell)
    assert f"Did you mean {meant}?" in str(caught.value)


@pytest.mark.parametrize(
    "cell",
    [
        "%alias\n",
        "%%bash\nx\n",
        "%cd ..\n",
        "%%capture x\ny\n",
        "%unheard_of\n",
        "%%kernels\nx\n",
        "%time x\n",
    ],
)
def test_other_names_are_left_to_ipython(transform, cell):
    assert "get_ipython()" in transform(cell)


def test_a_magic_of_the_users_own_that_is_nearly_one_of_ours_is_left_alone(shell):
    shell.register_magic_function(lambda line, cell: None, "cell", "cuda_form")

    assert "cuda_form" in shell.transform_cell("%%cuda_form f\nx\n")


def test_the_question_mark_asks_for_help(transform):
    assert "pinfo" in transform("%%cuda_from?")


def test_a_terminal_waits_for_the_body(shell):
    complete = shell.input_transformer_manager.check_complete

    assert complete("%%cuda_from f")[0] == "incomplete"
    assert complete("%%cuda_from f\nwhat it does")[0] == "incomplete"
    assert complete("%%cuda_from f\nwhat it does\n\n")[0] == "complete"
