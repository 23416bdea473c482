"""The tutorial's notebooks, run again: what comes out is what they show."""

from __future__ import annotations

import importlib.util
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat
import pytest

TUTORIAL = Path(__file__).parents[2] / "docs" / "tutorial"
spec = importlib.util.spec_from_file_location("tutorial", TUTORIAL / "run.py")
tutorial = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tutorial)


@pytest.fixture(scope="module")
def runs(request):
    """The notebooks that were asked for, two at a time: each waits for its kernel much of the time."""
    asked = {item.callspec.params["name"] for item in request.session.items if item.path == request.path}
    with ThreadPoolExecutor(2) as pool:
        yield {name: pool.submit(tutorial.run, name) for name in sorted(asked)}


@pytest.mark.parametrize("name", tutorial.NOTEBOOKS)
def test_a_notebook_shows_what_comes_out_again(name, runs):
    shown = nbformat.read(TUTORIAL / name, as_version=4)

    assert tutorial.outcomes(runs[name].result()) == tutorial.outcomes(shown)
