"""The documentation as a site: it is built, with warnings as errors, from what is in the source tree alone."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
NOTEBOOKS = sorted((DOCS / "tutorial").glob("*.ipynb"))
LOADED = re.compile(
    r"<(?:script|img|iframe|link)[^>]+(?:src|href)\s*=\s*[\"'](?:https?:)?//[^\"']+", re.IGNORECASE
)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Sphinx tells broken links, missing pictures and pages that no table of contents holds."""
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", str(DOCS), str(folder)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stderr.strip()) == (0, "")
    return folder


def test_every_page_is_on_the_site(site):
    pages = {path.relative_to(DOCS).with_suffix(".html") for path in DOCS.rglob("*.md")}
    pages |= {path.relative_to(DOCS).with_suffix(".html") for path in NOTEBOOKS}

    assert {page.as_posix() for page in pages if not (site / page).is_file()} == set()


def test_no_page_loads_anything_from_elsewhere(site):
    loaded = {
        f"{path.relative_to(site)}: {found}"
        for path in site.rglob("*.html")
        for found in LOADED.findall(path.read_text(encoding="utf-8"))
    }

    assert loaded == set()


def test_reports_and_both_pictures_are_on_a_page_of_the_tutorial(site):
    page = (site / "tutorial" / "2-reading-a-report.html").read_text(encoding="utf-8")

    assert page.count("What was not checked</h4>") == 2
    assert re.search(
        r'class="only-light"[^>]*state-accepted\.png|state-accepted\.png"[^>]*class="only-light"', page
    )
    assert "state-accepted-dark.png" in page


def test_every_picture_is_shown_somewhere():
    pages = [*DOCS.rglob("*.md"), *DOCS.rglob("*.ipynb"), DOCS.parent / "README.md"]
    shown = "".join(page.read_text(encoding="utf-8") for page in pages)
    pictures = {path.name for path in (DOCS / "images").glob("*.png")}

    assert {name for name in pictures if f"images/{name.replace('-dark.png', '.png')}" not in shown} == set()


def test_no_example_has_a_comment_behind_a_magic():
    """IPython passes it on as part of the magic's words: it would not work as it is copied."""
    wrong = [
        f"{page.name}: {line}"
        for page in (*DOCS.rglob("*.md"), DOCS.parent / "README.md")
        for block in re.findall(
            r"^```\w*\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
        )
        for line in block.split("\n")
        if re.match(r"%{1,2}[a-z_]+\b.*\s#\s", line)
    ]

    assert wrong == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_of_the_tutorial_is_small_and_says_where_its_answers_come_from(path):
    notebook = json.loads(path.read_text(encoding="utf-8"))
    text = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "markdown"]

    assert path.stat().st_size < 300_000
    assert notebook["metadata"]["kernelspec"]["name"] == "llm-cuda"
    assert any("](../images/" in part for part in text)
    if path.with_suffix(".replies.json").is_file():
        assert any("No model was asked for this page" in part for part in text)
