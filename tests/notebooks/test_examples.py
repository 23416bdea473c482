"""The main job as README runs it, and its notebooks run again with their records."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from llmkernel.display.bundle import RECORD_MIME

from .running import data_of, run_notebook, text_of

pytestmark = pytest.mark.usefixtures("jupyter")

EXAMPLES = Path(__file__).parents[2] / "examples"
NOTEBOOKS = ("quickstart.ipynb", "heat_equation.ipynb")


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    done = subprocess.run(
        [sys.executable, "-m", "llmkernel", "demo", "--output", str(folder), "--device", "cpu"],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    return folder, done


def test_the_demonstration_ends_with_a_verified_kernel(demo):
    folder, done = demo
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("in a browser. It shows what a notebook's cells show.\n")
    assert f"Next: open {folder / 'quickstart.html'}" in done.stdout
    assert not re.search(r"^\s+(s|ms|eps)$", done.stdout, re.MULTILINE)
    for seen in ("passed", "every element written", "trivial controls", "What was not checked", "mulation"):
        assert seen in done.stdout


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_it_leaves_executed_notebooks_and_pages_that_load_nothing(demo, name):
    folder, _ = demo
    notebook = nbformat.read(folder / name, as_version=4)
    assert all(c.execution_count for c in notebook.cells if c.cell_type == "code")
    assert any(data_of(c, RECORD_MIME) for c in notebook.cells if c.cell_type == "code")
    page = (folder / name).with_suffix(".html").read_text(encoding="utf-8")
    assert "✓" in page
    assert not re.search(r"<(?:script|link|img|iframe)[^>]+(?:src|href)\s*=\s*[\"']https?:", page)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_with_its_record_a_notebook_replays(demo, name):
    folder, _ = demo
    notebook = nbformat.read(EXAMPLES / name, as_version=4)
    assert not any(c.get("outputs") for c in notebook.cells)
    again = run_notebook(notebook, cwd=folder)
    (report,) = [html for c in again.cells if c.cell_type == "code" for html in data_of(c, "text/html")][:1]
    assert "replayed from its record" in report
    assert not any(o.output_type == "error" for c in again.cells if c.cell_type == "code" for o in c.outputs)


def test_the_quickstart_says_what_it_promises(demo):
    folder, _ = demo
    cells = [
        c for c in nbformat.read(folder / "quickstart.ipynb", as_version=4).cells if c.cell_type == "code"
    ]
    assert float(text_of(cells[2])) < 1e-7
    assert "float64" in text_of(cells[4])
    assert text_of(cells[5]).startswith("wrong_value")
