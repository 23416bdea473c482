from __future__ import annotations

import types

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmkernel.magics.ask_cells import answer_code, corrected_cell
from llmkernel.magics.cuda import CudaMagics
from llmkernel.magics.kernel_cell import kernel_cell, quoted
from llmkernel.magics.options import CudaOptions, parse_options
from llmkernel.magics.parsing import split_line


def kernel(function, reference="f", name="f_cuda"):
    made = types.SimpleNamespace(name=reference, function=function)
    return types.SimpleNamespace(problem=types.SimpleNamespace(name=name, reference=made))


class Model:
    def forward(self, x):
        return x


def f(x):
    return x


@pytest.mark.parametrize(
    ("names", "function", "own", "written"),
    [
        ({"f": f}, f, "f", "f"),
        ({"g": f}, f, "f", "g"),
        ({"np": np}, np.cumsum, "cumsum", "np.cumsum"),
        ({"np": np}, np.linalg.norm, "norm", "np.linalg.norm"),
        ({"la": np.linalg}, np.linalg.norm, "norm", "la.norm"),
        ({"exp": None, "np": np}, np.exp, "exp", "np.exp"),
        ({}, f, "f", "f"),
    ],
)
def test_the_reference_has_the_notebooks_name(shell, names, function, own, written):
    shell.push(names)
    line = kernel_cell(shell, kernel(function, own), "source\n").split("\n")[0]

    assert line == f"%%cuda f_cuda --from {written}"


def test_a_method_is_named_by_its_object(shell):
    model = Model()
    shell.push({"model": model, "other": Model()})

    assert "--from model.forward\n" in kernel_cell(shell, kernel(model.forward, "forward"), "")


MADE = (
    """%%cuda_from f --inputs "x, w='a'" --shapes "M=3,N=4;M=1,N=2" --tolerance 0.01 --baseline g --baseline h """
    "--attempts 3"
)


def test_the_options_are_those_of_the_cell_that_made_it(shell):
    for cell in (MADE + "\nfast", "%%cuda_from f --name other --inputs y\nx", "%%cuda_from f --nonsense\nx"):
        shell.run_cell(cell, store_history=True)
    line = kernel_cell(shell, kernel(f), "").split("\n")[0].removeprefix("%%cuda ")

    options = parse_options(CudaOptions, CudaMagics.cuda, line, None)
    assert options.inputs == "x, w='a'"
    assert options.shapes == ({"M": 3, "N": 4}, {"M": 1, "N": 2})
    assert (options.tolerance, options.baseline) == (0.01, ("g", "h"))


@given(st.text())
def test_any_value_comes_back_from_the_line(value):
    assert split_line(quoted(value)) == [value]


BLOCKS = st.sampled_from(
    ["```python\na\n```", "```\nb\n```", "```cuda\nc\n```", "text", "~~~py\nd", "> ```python\n> e\n> ```"]
)


@given(st.lists(BLOCKS | st.text(max_size=10)).map("\n".join))
def test_any_answer_is_read(answer):
    for found in (corrected_cell(answer), answer_code(answer)):
        assert found is None or not found.endswith("\n")


def test_the_last_python_block_is_the_correction():
    assert corrected_cell("```python\nold\n```\n```text\nno\n```\n```python\nnew\n```") == "new"
    assert corrected_cell("```cuda\na\n```\n```bash\nb\n```") is None
    assert corrected_cell("no code") is None
