"""The tutorial's notebooks, run again: what comes out is what they show."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import nbformat
import pytest

TUTORIAL = Path(__file__).parents[2] / "docs" / "tutorial"
spec = importlib.util.spec_from_file_location("tutorial", TUTORIAL / "run.py")
tutorial = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tutorial)


@pytest.mark.parametrize("name", tutorial.NOTEBOOKS)
def test_a_notebook_shows_what_comes_out_again(name):
    shown = nbformat.read(TUTORIAL / name, as_version=4)

    assert tutorial.outcomes(tutorial.run(name)) == tutorial.outcomes(shown)
