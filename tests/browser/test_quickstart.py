"""The quickstart in JupyterLab: picked in the launcher, typed, run and reloaded."""

from __future__ import annotations

from tests.browser.accessibility import violations
from tests.browser.notebook_page import REPORT


def test_the_launcher_shows_the_logo(quickstart):
    assert "/kernelspecs/llm-cuda/logo" in quickstart.logo["source"]
    assert quickstart.logo["width"] > 0


def test_states_are_shown_while_the_cell_runs(quickstart):
    working = [state for state in quickstart.states if "working · softmax_cuda" in state]

    assert any("full verification" in state for state in working)
    assert any("static rules" in state for state in working), "checks are shown as they finish"
    assert len(working) > 5
    finished = quickstart.states.index(next(s for s in quickstart.states if "passed · softmax_cuda" in s))
    assert finished > quickstart.states.index(working[-1])


def test_the_report_has_the_verdict_the_checks_and_what_is_missing(quickstart):
    report = quickstart.reports[0]

    assert report.startswith("✓ passed · softmax_cuda Agrees with the reference on ")
    for part in (
        "Timing (emulation)",
        "row-scaled error against the float64 oracle",
        "guard bands",
        "What was not checked",
        "Nothing ran on a GPU",
    ):
        assert part in report


def test_the_other_cells_say_what_the_notebook_promises(quickstart):
    cells = quickstart.notebook.cells
    outputs = [cells.nth(index).locator(".jp-OutputArea").inner_text() for index in range(cells.count() - 1)]

    assert float(outputs[2].split(":")[-1]) < 1e-6
    assert "softmax_cuda(x: float32[M, N]) -> y: float32[M, N]" in outputs[3]
    assert "received: float64 (512, 1000)" in outputs[4]
    assert "wrong_value" in outputs[5]


def test_the_summary_of_every_folded_part_opens_by_keyboard(quickstart):
    report = quickstart.notebook.page.locator(REPORT).first
    summary = report.locator("summary", has_text="Source").first
    summary.focus()
    quickstart.notebook.page.keyboard.press("Enter")

    assert report.locator("details[open] pre").first.is_visible()
    quickstart.notebook.page.keyboard.press("Enter")
    assert report.locator("details[open]").count() == 0


def test_reloading_the_page_keeps_the_output(quickstart):
    notebook = quickstart.notebook
    notebook.page.reload()
    notebook.wait_for_cells()

    assert notebook.report.is_visible()
    assert notebook.wait_for_reports(len(quickstart.reports)) == quickstart.reports


def test_nothing_in_the_reports_is_inaccessible(quickstart):
    assert violations(quickstart.notebook.page, REPORT) == []
