"""The saved notebook elsewhere: a fresh server, another person's, and Notebook 7. Nothing is run there."""

from __future__ import annotations

import json
import re

from tests.browser.accessibility import violations
from tests.browser.notebook_page import OVERFLOW, REPORT


def counts(path):
    return [cell.get("execution_count") for cell in json.loads(path.read_text("utf-8"))["cells"]]


def test_a_fresh_server_shows_the_output_without_running_in_the_dark_and_in_a_narrow_window(
    quickstart, fresh, visit
):
    before = counts(quickstart.path)
    with visit(height=760) as notebook:
        notebook.goto(fresh.url("lab/tree/quickstart.ipynb"))

        assert notebook.report.is_visible()
        assert notebook.wait_for_reports(len(quickstart.reports)) == quickstart.reports
        assert counts(quickstart.path) == before

        choose_dark_theme(notebook.page)
        background = notebook.report.evaluate("element => getComputedStyle(element).backgroundColor")
        assert max(int(part) for part in re.findall(r"\d+", background)[:3]) < 80
        notebook.picture("quickstart-dark")
        assert violations(notebook.page, REPORT) == []

        notebook.page.keyboard.press("Control+b")
        notebook.page.locator("#jp-left-stack").wait_for(state="hidden")
        notebook.page.set_viewport_size({"width": 400, "height": 760})
        assert notebook.report.evaluate(OVERFLOW) == []
        notebook.picture("quickstart-narrow")


def choose_dark_theme(page):
    page.get_by_role("menuitem", name="Settings").click()
    page.locator(".lm-Menu-itemLabel", has_text=re.compile("^Theme$")).hover()
    page.locator(".lm-Menu-itemLabel", has_text=re.compile("^JupyterLab Dark$")).click()
    page.locator('body[data-jp-theme-name="JupyterLab Dark"]').wait_for(state="attached")


def test_a_notebook_from_elsewhere_shows_the_verdict_and_the_checks(quickstart, fresh, visit):
    """Jupyter does not trust what it did not sign: it strips styles, and the report must do without."""
    notebook = json.loads(quickstart.path.read_text("utf-8"))
    notebook["metadata"]["title"] = "Changed on its way here"
    quickstart.path.with_name("elsewhere.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    with visit() as notebook:
        notebook.goto(fresh.url("lab/workspaces/elsewhere/tree/elsewhere.ipynb"))
        cell = notebook.page.locator(".jp-CodeCell", has_text="%%cuda_from").first
        output = cell.locator(".jp-OutputArea")
        output.get_by_text("Agrees with the reference on").first.wait_for()
        notebook.picture("quickstart-untrusted")
        shown = output.inner_text()

        assert notebook.page.locator(".jp-OutputArea-output style").count() == 0
    for part in ("passed", "What was checked", "guard bands", "What was not checked", "Nothing ran on a GPU"):
        assert part in shown


def test_notebook_7_shows_the_same(quickstart, fresh, visit):
    """Where it is installed a server of JupyterLab serves it too."""
    with visit() as notebook:
        notebook.goto(fresh.url("notebooks/quickstart.ipynb"))
        assert notebook.page.locator("body").get_attribute("data-notebook") == "notebooks"

        assert notebook.report.is_visible()
        notebook.picture("notebook-7")
        assert notebook.wait_for_reports(len(quickstart.reports)) == quickstart.reports
        assert violations(notebook.page, REPORT) == []
