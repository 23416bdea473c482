"""A question in JupyterLab: the answer streams in, and the corrected cell stands below, not run."""

from __future__ import annotations

import json

import pytest

from tests.kernel.conftest import run_cli
from tests.wire.scripts import Script
from tests.wire.server import WireServer

ANSWER = """\
The last cell divides by **zero**: `n` is 0 for an empty list.

![a picture](http://192.0.2.1/?x=1) <img src="http://192.0.2.1/i.png">

```python
n = len(values) or 1
print(10 / n)
```
"""


@pytest.fixture
def answering(jupyter, monkeypatch):
    """A notebook with a kernel whose provider is a local server that answers slowly."""
    for name in ("JUPYTER_PATH", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR"):
        monkeypatch.setenv(name, jupyter.environment[name])
    with WireServer([Script(text=ANSWER, thinking="Hm.", chunk=4, delay_s=0.03)]) as wire:
        variables = (f"ANTHROPIC_BASE_URL={wire.url}", "ANTHROPIC_API_KEY=sk-ant-api03-" + "test" * 10)
        done = run_cli(
            *("install", "--prefix", str(jupyter.folder / "prefix"), "--name", "answering"),
            *("--display-name", "LLM-CUDA (answering)"),
            *(word for variable in variables for word in ("--env", variable)),
        )
        assert done.returncode == 0, done.stderr
        jupyter.notebooks.mkdir(exist_ok=True)
        kernel = {"name": "answering", "display_name": "LLM-CUDA (answering)", "language": "python"}
        cell = {"cell_type": "code", "id": "first", "metadata": {}, "outputs": [], "execution_count": None}
        notebook = {
            "cells": [{**cell, "source": ""}],
            "metadata": {"kernelspec": kernel},
            "nbformat": 4,
            "nbformat_minor": 5,
        }
        (jupyter.notebooks / "asked.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
        yield wire
        jupyter.uninstall("answering")


def test_a_correction_streams_in_and_stands_below(answering, lab, visit):
    # `visit` sees to it that nothing is asked of another host: the answer's images are not loaded.
    with visit(height=1000) as notebook:
        notebook.goto(lab.url("lab/workspaces/ask/tree/asked.ipynb"))
        notebook.wait_for_idle_kernel("LLM-CUDA (answering)")
        notebook.run_cell("values = []\nn = len(values)\nprint(10 / n)")
        cell = notebook.start_cell("%ask --fix")
        output = cell.locator(".jp-OutputArea-output")
        output.get_by_text("answering…").wait_for()
        assert "tokens in" not in output.inner_text()
        notebook.wait_for_end(cell)

        output.get_by_text("tokens in").wait_for()
        assert output.count() == 1
        assert output.locator("strong").first.inner_text() == "zero"
        assert "n = len(values) or 1" in output.locator("pre").first.inner_text()
        assert "+print(10 / n)" not in output.inner_text()
        assert "+n = len(values) or 1" in output.locator("pre").last.inner_text()
        assert output.locator("img").count() == 0
        below = notebook.cells.nth(2)
        assert below.locator(".cm-content").inner_text().strip() == "n = len(values) or 1\nprint(10 / n)"
        assert below.locator(".jp-InputPrompt").inner_text().strip() == "[ ]:"
        notebook.picture("answer")
