"""JupyterLab in Chromium: the servers, the browser, and the quickstart typed into a new notebook once for all tests."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.browser.notebook_page import REPORT, NotebookPage, source_cells
from tests.browser.server import FOLLOWS_BROWSER, JupyterServer
from tests.kernel.conftest import kernel_environment, run_cli
from tests.wire.server import WireServer

QUICKSTART = Path(__file__).parents[2] / "examples" / "quickstart.ipynb"
STATES = (
    "streaming",
    "repairing",
    "wrong",
    "crashed",
    "cancelled",
    "accepted",
    "replayed",
    "offline",
    "by-hand",
    "answered",
)
SHOWN = (
    "launcher",
    "quickstart-working",
    *(f"state-{state}" for state in STATES),
)
MAX_PICTURE_BYTES = 150_000
_KEPT_VARIABLES = ("PATH", "LANG", "LC_ALL", "TMPDIR", "VIRTUAL_ENV", "LD_LIBRARY_PATH", "PYTHONPATH")
_FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--pictures", type=Path, metavar="DIR", help="keep the pictures that the documentation shows in DIR"
    )


@dataclass
class Jupyter:
    """A folder with an installed kernel, and the variables under which Jupyter finds it."""

    folder: Path
    notebooks: Path
    environment: dict[str, str]

    def server(
        self,
        application: str,
        state: str,
        variables: Mapping[str, str] | None = None,
        settings: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> JupyterServer:
        """Return a server that keeps its settings in a folder called `state`."""
        environment = {**self.environment, **(variables or {})}
        return JupyterServer(application, self.notebooks, self.folder / state, environment, settings)

    def uninstall(self, name: str) -> None:
        """Take a test's own kernel out of the launcher again."""
        done = run_cli("uninstall", "--prefix", str(self.folder / "prefix"), "--name", name)
        assert done.returncode == 0, done.stderr


@dataclass
class Quickstart:
    """The quickstart's notebook as it was left in JupyterLab.

    Attributes
    ----------
    path : Path
        The saved notebook.
    logo : dict
        Of the kernel's card in the launcher: its source and its natural width.
    states : list of str
        What the reports showed while the cells ran.
    reports : list of str
        Their text at the end.
    """

    notebook: NotebookPage
    path: Path
    logo: dict[str, Any]
    states: list[str]
    reports: list[str]


@pytest.fixture(scope="package")
def jupyter(tmp_path_factory: pytest.TempPathFactory) -> Jupyter:
    """Our kernel, installed as a person would, in folders of the test's own."""
    folder = tmp_path_factory.mktemp("browser")
    environment = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    # Compilers keep their own libraries in the cache, which take long to build.
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    environment |= {"HOME": str(folder), "XDG_CACHE_HOME": cache, **kernel_environment(folder)}
    done = run_cli("install", "--prefix", str(folder / "prefix"))
    assert done.returncode == 0, done.stderr
    return Jupyter(folder, folder / "notebooks", environment)


@pytest.fixture(scope="package")
def browser() -> Iterator[Any]:
    """Chromium, headless, as the system installed it."""
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("Chromium is not installed; on Debian: apt-get install chromium")
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=_FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def pictures(jupyter: Jupyter, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A folder for pictures; those in the documentation are copied where ``--pictures`` says."""
    folder = jupyter.folder / "pictures"
    folder.mkdir()
    yield folder
    target = request.config.getoption("--pictures", default=None)
    names = [name for shown in SHOWN for name in (shown, f"{shown}-dark")]
    for name in names if target is not None else ():
        picture = folder / f"{name}.png"
        if picture.is_file():
            assert picture.stat().st_size <= MAX_PICTURE_BYTES, f"{name} is too large to be committed"
            shutil.copy(picture, target / picture.name)


@pytest.fixture(scope="package")
def visit(browser: Any, pictures: Path) -> Callable[..., Any]:
    """Open pages: ``with visit(width=400) as notebook``. Nothing is reached of any other host, nor may be asked for."""

    @contextmanager
    def visit(
        width: int = 1280, height: int = 900, *, may_ask_others: bool = False, **options: Any
    ) -> Iterator[NotebookPage]:
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        foreign: list[str] = []

        def answer(route: Any) -> None:
            if route.request.url.startswith("http://127.0.0.1:"):
                route.continue_()
            else:
                foreign.append(route.request.url)
                route.abort()

        context.route(lambda url: url.startswith("http"), answer)
        page = context.new_page()
        page.set_default_timeout(90_000)
        try:
            yield NotebookPage(page, pictures)
            assert may_ask_others or foreign == []
        except BaseException:
            page.screenshot(path=pictures / "failed.png")
            raise
        finally:
            context.close()

    return visit


@pytest.fixture(scope="package")
def lab(browser: Any, jupyter: Jupyter) -> Iterator[JupyterServer]:
    """A JupyterLab; not started where there is no browser for it."""
    with jupyter.server("jupyterlab", "lab", settings=FOLLOWS_BROWSER) as server:
        yield server


@pytest.fixture(scope="module")
def asking(jupyter: Jupyter) -> Iterator[WireServer]:
    """A second kernel, ``asking``: its provider is a local server, which says in its model's name what it is."""
    with WireServer() as wire:
        variables = {
            "LLMKERNEL_OPENAI_BASE_URL": wire.openai_url,
            "LLMKERNEL_OPENAI_MODEL": "replies-written-by-hand",
        }
        done = run_cli(
            *("install", "--prefix", str(jupyter.folder / "prefix"), "--name", "asking"),
            *("--display-name", "LLM-CUDA (asking)"),
            *(word for name, value in variables.items() for word in ("--env", f"{name}={value}")),
        )
        assert done.returncode == 0, done.stderr
        jupyter.notebooks.mkdir(exist_ok=True)
        yield wire
        jupyter.uninstall("asking")


def asking_notebook(sources: Iterable[str]) -> dict[str, Any]:
    """Return the JSON of a notebook for the kernel `asking`, with these cells."""
    empty = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
    return {
        "cells": [{**empty, "id": f"cell-{i}", "source": source} for i, source in enumerate(sources)],
        "metadata": {
            "kernelspec": {"name": "asking", "display_name": "LLM-CUDA (asking)", "language": "python"}
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }


@pytest.fixture(scope="package")
def fresh(browser: Any, jupyter: Jupyter) -> Iterator[JupyterServer]:
    """A JupyterLab that was never used, with Notebook 7 and Voila as its extensions."""
    with jupyter.server("jupyterlab", "fresh") as server:
        yield server


@pytest.fixture(scope="package")
def quickstart(lab: JupyterServer, jupyter: Jupyter, visit: Callable[..., Any]) -> Iterator[Quickstart]:
    """LLM-CUDA picked in the launcher, the quickstart's cells typed and run, the notebook saved."""
    with visit() as notebook:
        page = notebook.page
        page.goto(lab.url("lab"))
        card = page.locator('.jp-LauncherCard[title="LLM-CUDA"]').first
        logo = card.locator("img").evaluate(
            "async img => { await img.decode(); return {source: img.src, width: img.naturalWidth}; }"
        )
        for suffix in notebook.both_themes():
            notebook.picture(f"launcher{suffix}")
        card.click()
        notebook.wait_for_cells()
        notebook.wait_for_idle_kernel()
        notebook.watch_reports()
        for source in source_cells(json.loads(QUICKSTART.read_text("utf-8"))):
            cell = notebook.start_cell(source)
            if source.startswith("%%cuda_from"):
                working = cell.locator(REPORT, has_text="working · softmax_cuda")
                working.get_by_text("static rules").wait_for()
                notebook.picture("quickstart-working")
                notebook.page.locator(REPORT, has_text="passed · softmax_cuda").wait_for()
                notebook.picture("quickstart-report")
            notebook.wait_for_end(cell)
        notebook.save_as("quickstart.ipynb")
        yield Quickstart(
            notebook, jupyter.notebooks / "quickstart.ipynb", logo, notebook.watched(), notebook.reports()
        )
