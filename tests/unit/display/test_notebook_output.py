"""The live output in a real Jupyter kernel: one output that ends as the report."""

from __future__ import annotations

import nbformat
from nbclient import NotebookClient

CELL = """
from llmkernel.display.bundle import report_bundle
from llmkernel.display.live import LiveOutput
from llmkernel.evaluation.report import Report
from llmkernel.synthesis.events import PromptBuilt, TextReceived, StageStarted

def run(end):
    live = LiveOutput("softmax")
    with live:
        live(PromptBuilt(1, 3, "provider", 10))
        live(TextReceived("some text"))
        live(StageStarted("full"))
        print("printed while it runs")
        end(live)
"""


def run_cells(*cells: str) -> list[list]:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    NotebookClient(notebook, timeout=120, kernel_name="python3", allow_errors=True).execute()
    return [cell.outputs for cell in notebook.cells]


def test_one_output_becomes_the_report_and_stays_in_its_cell():
    finish = "lambda live: live.finish(report_bundle(Report('passed', 'All right.', name='softmax')))"
    record = "report_bundle(Report('passed', 'x'), record={'name': 'softmax'})"
    _, first, second, failed = run_cells(
        CELL, f"run({finish})", f"run(lambda live: live.finish({record}))", "run(lambda live: 1 / 0)"
    )

    shown = [o for o in first if o.output_type == "display_data"]
    assert len(shown) == 1
    assert shown[0]["data"]["text/plain"].startswith("✓ passed · softmax\nAll right.")
    assert "some text" not in shown[0]["data"]["text/html"]
    assert [o.text for o in first if o.output_type == "stream"] == ["printed while it runs\n"]
    data = next(o for o in second if o.output_type == "display_data")["data"]
    assert data["application/vnd.llmkernel.record+json"] == {"name": "softmax"}
    last = [o for o in failed if o.output_type == "display_data"]
    assert len(last) == 1
    assert "failed: ZeroDivisionError" in last[0]["data"]["text/plain"]
    assert failed[-1].ename == "ZeroDivisionError"
