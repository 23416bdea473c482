"""The live view in JupyterLab: seen, used by keyboard, cancelled, and gone from the notebook that is saved."""

from __future__ import annotations

import json

import pytest

from tests.browser.accessibility import violations
from tests.browser.conftest import asking_notebook
from tests.browser.notebook_page import OVERFLOW, REPORT
from tests.wire.scripts import SILENCE, Script

HEADER = "//! double(x: float32[N]) -> y: float32[N]\n//! twice<<<ceil_div(N, 256), 256>>>(x, y, N)\n"
WRONG = "    if (i < N) y[i] = i % 64 == 63 ? 0.0f : 2 * x[i];\n"
RIGHT = "    if (i < N) y[i] = 2 * x[i];\n"
LIVE = ".jp-OutputArea-output .live"
DEAD = ("Loading widget", "Error displaying widget", "model not found")


def reply(words: str, line: str) -> str:
    body = f"    int i = blockIdx.x * 256 + threadIdx.x;\n{line}"
    kernel = f"__global__ void twice(const float* x, float* y, int N) {{\n{body}}}\n"
    return f"{words}\n\n```cuda\n{HEADER}{kernel}```\n"


@pytest.fixture(scope="module")
def notebook(asking, lab, jupyter, visit):
    setup = "import numpy as np\nx = np.ones(640, 'float32')\ndef double(x): return x * 2"
    cells = [
        setup,
        "%%cuda_from double\nAs fast as memory allows.",
        "%%cuda_from double\nAs simple as it can be.",
    ]
    path = jupyter.notebooks / "watched.ipynb"
    path.write_text(json.dumps(asking_notebook(cells)), encoding="utf-8")
    with visit(height=1000) as notebook:
        notebook.goto(lab.url("lab/workspaces/watched/tree/watched.ipynb"))
        notebook.wait_for_idle_kernel("LLM-CUDA (asking)")
        notebook.run(notebook.cells.nth(0))
        yield notebook


@pytest.fixture(scope="module")
def cancelled(asking, notebook):
    """A cell that is watched until its third reply falls silent, then cancelled by keyboard."""
    halted = reply("The guard was missing.", RIGHT)
    asking.queue(
        Script(text=reply("One thread an element.", WRONG), chunk=20),
        Script(text=reply("Without the modulo.", WRONG.replace("63 ?", "31 ?")), chunk=20),
        Script(text=halted, broken=SILENCE, break_after=len(halted) - 60, chunk=20),
    )
    page, seen = notebook.page, {"flaws": []}
    cell = notebook.cells.nth(1)
    notebook.start(cell)
    live = cell.locator(LIVE)
    live.get_by_text("attempt 3 of 4").wait_for()
    live.locator("pre.tail .k", has_text="__global__").wait_for()
    live.locator("summary", has_text="Attempt 1: ✗ wrong value").focus()
    page.keyboard.press("Enter")
    sent = page.locator("summary", has_text="What was sent, attempt 1")
    live.locator(sent).click()
    seen["maps"] = [svg.get_attribute("aria-label") for svg in live.locator("details[open] .emap svg").all()]
    seen["sent"] = live.locator("details[open]", has=sent).get_by_label("Sent as user").inner_text()
    seen["compared"] = live.locator("table.cmp").get_attribute("aria-label")
    live.get_by_role("checkbox", name="attempt 1 ✗ wrong value").focus()
    page.keyboard.press("Space")
    live.get_by_text("Choose two of them.").wait_for()  # the kernel answers while the cell runs
    page.keyboard.press("Space")
    live.locator("table.cmp").wait_for()
    for suffix in notebook.both_themes():
        live.scroll_into_view_if_needed()
        notebook.picture(f"live-view{suffix}")
        seen["flaws"] += violations(page, LIVE, ("color-contrast",) if suffix else ())
    page.set_viewport_size({"width": 760, "height": 1000})
    live.get_by_role("button", name="Cancel").focus()
    seen["flaws"] += live.evaluate(OVERFLOW)
    notebook.picture("live-view-narrow")
    page.keyboard.press("Enter")
    notebook.wait_for_end(cell)
    return cell, seen


def test_the_view_shows_what_goes_on_while_it_streams(cancelled):
    _, seen = cancelled

    assert seen["maps"][0].startswith("Error map: y (640) has wrong elements in ")
    assert "As fast as memory allows." in seen["sent"]
    assert seen["compared"].startswith("attempt 1: wrong value beside attempt 2: wrong value: +1 −1")


def test_nothing_in_it_is_inaccessible_in_light_and_dark_or_cut_off(cancelled):
    _, seen = cancelled

    assert seen["flaws"] == []


def test_cancel_stops_the_cell_and_the_connection(cancelled, asking):
    cell, _ = cancelled
    shown = cell.locator(".jp-OutputArea").inner_text()

    assert asking.hung_up.is_set() or asking.hung_up.wait(10)
    assert "interrupted" in shown
    assert "KeyboardInterrupt: the cell was stopped; double_cuda" in shown
    assert cell.locator(LIVE).count() == 0


def test_the_report_takes_its_place_and_nothing_dead_is_saved(cancelled, asking, notebook, jupyter):
    asking.queue(Script(text=reply("Each thread doubles one element.", RIGHT)))
    cell = notebook.cells.nth(2)
    notebook.run(cell)
    assert "passed · double_cuda" in cell.locator(REPORT).inner_text()
    notebook.save()
    saved = json.loads((jupyter.notebooks / "watched.ipynb").read_text("utf-8"))
    outputs = [output for cell in saved["cells"] for output in cell.get("outputs", ())]
    before = notebook.reports()
    notebook.page.reload()
    notebook.wait_for_cells()

    assert "widget" not in json.dumps([outputs, saved["metadata"]])
    assert [o["output_type"] for o in saved["cells"][2]["outputs"]] == ["display_data"]
    assert notebook.wait_for_reports(2) == before
    assert not any(word in notebook.page.locator(".jp-Notebook").inner_text() for word in DEAD)


@pytest.fixture(scope="module")
def plain(lab, jupyter, visit):
    """A notebook of ipykernel's own kernel, whose page was connected before the extension is loaded."""
    waiting = (
        "import threading\nfrom llmkernel.display.live import LiveOutput\n"
        "from llmkernel.synthesis.events import PromptBuilt\n"
        "with LiveOutput('slow') as live:\n    live(PromptBuilt(1, 1, 'nobody', 0))\n    threading.Event().wait(60)"
    )
    content = asking_notebook(["%load_ext llmkernel", waiting])
    content["metadata"]["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    (jupyter.notebooks / "plain.ipynb").write_text(json.dumps(content), encoding="utf-8")
    with visit() as notebook:
        notebook.goto(lab.url("lab/workspaces/plain/tree/plain.ipynb"))
        notebook.wait_for_idle_kernel("Python 3 (ipykernel)")
        yield notebook


def test_loading_the_extension_into_a_plain_kernel_is_enough(plain):
    plain.run(plain.cells.nth(0))
    cell = plain.cells.nth(1)
    plain.start(cell)
    cancel = cell.locator(LIVE).get_by_role("button", name="Cancel")
    cancel.click()
    plain.wait_for_end(cell)

    assert "interrupted" in cell.locator(".jp-OutputArea").inner_text()
    assert cell.locator(LIVE).count() == 0
    assert plain.cells.nth(0).locator(".jp-OutputArea-output").count() == 0
