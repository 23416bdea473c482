"""A kernel written by hand in a cell."""

from __future__ import annotations

import pytest

from .running import data_of, make_notebook, run_notebook, text_of
from .test_cuda_from import CANDIDATE, SETUP, USE, WRONG

pytestmark = pytest.mark.usefixtures("jupyter")

LINE = "%%cuda scaled_cuda --from scaled --device cpu\n"


def test_a_right_one_is_accepted_and_kept(tmp_path):
    run = run_notebook([SETUP, LINE + CANDIDATE, USE], cwd=tmp_path)

    assert text_of(run.cells[2]) == "(True, 'ndarray')"
    assert data_of(run.cells[1], "text/html")
    assert (tmp_path / "kernels" / "scaled_cuda" / "kernel.cu").read_text(encoding="utf-8") == CANDIDATE


def test_what_is_not_right_is_refused_with_a_report(tmp_path):
    wrong, broken = LINE + WRONG, LINE + CANDIDATE.replace("if (i < count)", "if (i < count")
    host, no_header = LINE + CANDIDATE + "int main() { return 0; }\n", LINE + "__global__ void f() {}\n"
    notebook = make_notebook([SETUP, wrong, broken, host, no_header, "'scaled_cuda' in globals()"])
    run_notebook(notebook, cwd=tmp_path, allow_errors=True)

    for cell, outcome in zip(notebook.cells[1:5], ("wrong_value", "not_compiled", "", ""), strict=True):
        assert "NotAcceptedError" in text_of(cell)
        assert outcome in text_of(cell)
        assert data_of(cell, "text/html")
    assert text_of(notebook.cells[5]) == "False"
    assert not (tmp_path / "kernels").exists()
