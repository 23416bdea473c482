"""The stop button, while a provider keeps the cell waiting."""

from __future__ import annotations

import json

import pytest

from tests.browser.notebook_page import REPORT
from tests.kernel.conftest import run_cli
from tests.wire.scripts import SILENCE, Script
from tests.wire.server import WireServer

REPLY = """\
Each thread doubles one element; the last block is guarded.

```cuda
//! double(x: float32[N]) -> y: float32[N]
//! twice<<<ceil_div(N, 256), 256>>>(x, y, N)
__global__ void twice(const float* x, float* y, int N) {
"""


@pytest.fixture
def asking(jupyter, monkeypatch):
    """A second kernel, whose provider is a local server that goes silent in the middle of its reply."""
    for name in ("JUPYTER_PATH", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR"):
        monkeypatch.setenv(name, jupyter.environment[name])
    with WireServer([Script(text=REPLY, broken=SILENCE, break_after=len(REPLY), chunk=5)]) as wire:
        done = run_cli(
            *("install", "--prefix", str(jupyter.folder / "prefix"), "--name", "asking"),
            *("--display-name", "LLM-CUDA (asking)"),
            *(
                "--env",
                f"ANTHROPIC_BASE_URL={wire.url}",
                "--env",
                "ANTHROPIC_API_KEY=sk-ant-api03-" + "test" * 10,
            ),
        )
        assert done.returncode == 0, done.stderr
        jupyter.notebooks.mkdir(exist_ok=True)
        notebook = {
            "cells": [
                {
                    "cell_type": "code",
                    "id": "first",
                    "metadata": {},
                    "outputs": [],
                    "execution_count": None,
                    "source": "",
                }
            ],
            "metadata": {
                "kernelspec": {"name": "asking", "display_name": "LLM-CUDA (asking)", "language": "python"}
            },
            "nbformat": 4,
            "nbformat_minor": 5,
        }
        (jupyter.notebooks / "stopped.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
        yield wire
        jupyter.uninstall("asking")


def test_the_stop_button_ends_a_wait_and_the_next_cell_works(asking, lab, visit):
    with visit() as notebook:
        page = notebook.page
        notebook.goto(lab.url("lab/workspaces/stop/tree/stopped.ipynb"))
        notebook.wait_for_idle_kernel("LLM-CUDA (asking)")
        notebook.watch_reports()
        notebook.run_cell("import numpy as np\nx = np.ones(8, 'float32')\ndef double(x): return x * 2")
        cell = notebook.start_cell("%%cuda_from double\nAs fast as memory allows.")
        report = cell.locator(REPORT)
        report.get_by_text("__global__").first.wait_for()
        notebook.picture("cell-waiting")
        page.get_by_title("Interrupt the kernel").first.click()
        report.get_by_text("interrupted").first.wait_for()
        notebook.wait_for_end(cell)
        notebook.picture("cell-stopped")
        stopped = cell.locator(".jp-OutputArea").inner_text()
        following = notebook.run_cell("print(x.sum())")

        assert asking.hung_up.is_set() or asking.hung_up.wait(10)
        assert "KeyboardInterrupt: the cell was stopped; double_cuda" in stopped
        assert "Traceback" not in stopped
        assert following.locator(".jp-OutputArea").inner_text().strip() == "8.0"
        assert any("characters so far" in state for state in notebook.watched())
