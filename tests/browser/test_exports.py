"""The executed notebook as a file: HTML read offline, Markdown, a script, and papermill's run of it."""

from __future__ import annotations

import json
import subprocess
import sys

import nbformat
import pytest
from nbconvert import HTMLExporter, MarkdownExporter
from nbconvert.exporters import get_exporter

from tests.browser.accessibility import violations
from tests.browser.notebook_page import OVERFLOW, REPORT


def run_module(jupyter, *arguments):
    """Run a module of this interpreter in the notebooks' folder."""
    done = subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=jupyter.notebooks,
        env=jupyter.environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.fixture(scope="module")
def page_file(quickstart, jupyter):
    """The notebook as an HTML page without the scripts that nbconvert links to for formulas and widgets."""
    no_scripts = [f"--HTMLExporter.{name}_url=" for name in ("mathjax", "require_js", "jquery")]
    run_module(jupyter, "nbconvert", "--to", "html", *no_scripts, quickstart.path.name)
    return quickstart.path.with_suffix(".html")


def test_the_html_page_is_read_without_a_network(quickstart, page_file, visit):
    with visit(width=1100) as notebook:
        page, failed = notebook.page, []
        page.on("requestfailed", lambda request: failed.append(request.url))
        page.context.set_offline(True)
        page.goto(page_file.as_uri())

        assert notebook.wait_for_reports(len(quickstart.reports)) == quickstart.reports
        assert violations(page, REPORT) == []
        for width in (1100, 400):
            page.set_viewport_size({"width": width, "height": 900})
            assert notebook.report.is_visible()
            notebook.picture(f"page-{width}")
            assert notebook.report.evaluate(OVERFLOW) == []
        assert failed == []


def test_nbconvert_links_to_nothing_for_our_output(quickstart):
    """What its template links to is the same for a notebook without any output of ours."""
    notebook = nbformat.read(quickstart.path, as_version=4)
    with_output = links(HTMLExporter().from_notebook_node(notebook)[0])
    for cell in notebook.cells:
        cell.outputs = []

    assert with_output == links(HTMLExporter().from_notebook_node(notebook)[0])


def links(page):
    marks = ('src="http', 'href="http', "url(http", 'url("http')
    return {part.split('"')[0] for mark in marks for part in page.split(mark)[1:]}


def test_markdown_holds_the_report_as_markdown(quickstart):
    """By the name that ``nbconvert --to`` takes."""
    text, _ = get_exporter("llmkernel-markdown")().from_filename(str(quickstart.path))

    report = text.partition("### ✓ passed · softmax\\_cuda")[2].partition("```python")[0]

    assert "#### What was not checked" in report
    assert "<div" not in report
    assert "<style" not in report


def test_plain_markdown_holds_the_report_too(quickstart):
    text, _ = MarkdownExporter().from_filename(str(quickstart.path))

    assert "passed</strong></span> · softmax_cuda" in text
    assert "What was not checked" in text


def test_the_script_runs_the_magic(quickstart):
    script, _ = get_exporter("script")().from_filename(str(quickstart.path))

    assert "run_cell_magic('cuda_from', 'softmax'" in script
    compile(script, "quickstart.py", "exec")


def test_papermill_runs_it_from_its_record(quickstart, jupyter):
    pytest.importorskip("papermill", reason="papermill is not installed")
    run_module(jupyter, "papermill", quickstart.path.name, "again.ipynb", "-k", "llm-cuda")
    again = json.loads((jupyter.notebooks / "again.ipynb").read_text("utf-8"))
    shown = [
        "".join(output["data"]["text/plain"])
        for cell in again["cells"]
        for output in cell.get("outputs", ())
        if output["output_type"] == "display_data"
    ]

    assert "passed · softmax_cuda" in shown[0]
    assert "replayed from its record" in shown[0]


def test_voila_shows_the_replayed_report_without_the_code(quickstart, fresh, visit):
    """Voila runs the notebook from its record and shows what its cells leave; its own page asks for a few scripts."""
    with visit(may_ask_others=True) as notebook:
        page = notebook.page
        page.goto(fresh.url("voila/render/quickstart.ipynb"))
        report = page.locator("[role=region]", has_text="passed · softmax_cuda").first
        report.wait_for()

        assert "replayed from its record, no provider was asked" in report.inner_text()
        assert report.evaluate(OVERFLOW) == []
        assert page.get_by_text("%%cuda_from").count() == 0
        notebook.picture("voila")
