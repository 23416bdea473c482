from __future__ import annotations

import runpy
from pathlib import Path

import pytest

REFERENCE = Path(__file__).parents[3] / "docs" / "reference"


@pytest.mark.parametrize(
    "name", ["ask.md", "configuration.md", "cuda_from.md", "cuda.md", "kernels.md", "llm_usage.md"]
)
def test_the_page_says_what_the_code_does(name):
    pages = runpy.run_path(str(REFERENCE / "generate.py"))["PAGES"]

    written = (REFERENCE / name).read_text(encoding="utf-8")
    assert written == pages[name](), "run python docs/reference/generate.py"
