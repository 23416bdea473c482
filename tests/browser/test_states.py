"""Every state that a cell can show, looked at in light and in dark: the pictures of the guide are taken here."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.browser.conftest import STATES, asking_notebook
from tests.wire.scripts import SILENCE, Script

RIGHT = """\
//! row_sum_cuda(x: float32[M, N]) -> y: float32[M]
//! row_sum<<<M, 128>>>(x, y, N)
__global__ void row_sum(const float* __restrict__ x, float* __restrict__ y, int N)
{
    __shared__ float partial[128];
    float sum = 0.0f;
    for (int i = threadIdx.x; i < N; i += 128) sum += x[(long long)blockIdx.x * N + i];
    partial[threadIdx.x] = sum;
    __syncthreads();
    for (int half = 64; half > 0; half /= 2) {
        if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) y[blockIdx.x] = partial[0];
}
"""
# The last, incomplete chunk of a row is left out; and a row is read from nowhere.
WRONG = RIGHT.replace("i < N; i += 128", "i < N / 128 * 128; i += 128")
CRASHES = RIGHT.replace("__shared__", "x = nullptr;\n    __shared__")

SETUP = """\
import numpy as np

def row_sum(x):
    return x.sum(axis=1)

x = np.random.default_rng(0).normal(size=(64, 1000)).astype("float32")"""
INTENT = "One block a row; rows have about a thousand elements."
CELLS = {
    "setup": SETUP,
    "streaming": f"%%cuda_from row_sum\n{INTENT}",
    "after": "print(x.shape)",
    "repairing": f"%%cuda_from row_sum --attempts 3\n{INTENT}",
    "wrong": f"%%cuda_from row_sum --attempts 1\n{INTENT}",
    "crashed": f"%%cuda_from row_sum --attempts 1\n{INTENT}",
    "accepted": f"%%cuda_from row_sum\n{INTENT}",
    "replayed": f"%%cuda_from row_sum\n{INTENT}",
    "by-hand": f"%%cuda row_sum_cuda --from row_sum\n{RIGHT}".rstrip(),
    # Nobody listens at this address.
    "unplug": '%config LLMKernel.base_url = "http://127.0.0.1:9/v1"',
    "offline": f"%%cuda_from row_sum --replay never\n{INTENT}",
    "plug-in": "%config LLMKernel.base_url = None",
    "failing": "row_sum_cuda(x.T).shape",
    # Its answer puts a cell below, so it is the last one.
    "answered": "%ask --fix",
}
CORRECTION = """\
`x.T` is a view with other strides, and the kernel was proved for contiguous arrays. Copy it first:

```python
row_sum_cuda(x.T.copy()).shape
```
"""


def reply(source: str, words: str = "Each block adds up one row.", **changes: Any) -> Script:
    return Script(text=f"{words}\n\n```cuda\n{source}```\n", **changes)


def silent(source: str, words: str) -> Script:
    """A reply that stops in the middle of its code, the connection open."""
    whole = reply(source, words)
    return Script(text=whole.text, broken=SILENCE, break_after=len(whole.text) * 2 // 3, chunk=16)


@dataclass
class Seen:
    """What stood below each cell at its end, its accessibility violations, and what reached out of the report."""

    texts: dict[str, str] = field(default_factory=dict)
    flaws: dict[str, list[str]] = field(default_factory=dict)
    watched: list[str] = field(default_factory=list)
    has_hung_up: bool = False


@pytest.fixture(scope="module")
def seen(asking, lab, jupyter, visit):
    """The cells run one after the other in one notebook."""
    (jupyter.notebooks / "states.ipynb").write_text(
        json.dumps(asking_notebook(CELLS.values())), encoding="utf-8"
    )
    found = Seen()
    with visit(width=1000, height=1500) as notebook:
        notebook.goto(lab.url("lab/workspaces/states/tree/states.ipynb"))
        notebook.wait_for_idle_kernel("LLM-CUDA (asking)")
        notebook.page.keyboard.press("Control+b")
        notebook.watch_reports()
        cells = {name: notebook.cells.nth(index) for index, name in enumerate(CELLS)}

        def keep(name: str, cell: str = "") -> None:
            output = cells[cell or name].locator(".jp-OutputArea")
            found.flaws[name] = notebook.pictures_of(f"state-{name}", cells[cell or name])
            found.texts[name] = output.inner_text()

        def interrupt(cell: Any) -> None:
            notebook.page.get_by_title("Interrupt the kernel").first.click()
            cell.get_by_text("interrupted").first.wait_for()
            notebook.wait_for_end(cell)

        notebook.run(cells["setup"])
        asking.queue(silent(RIGHT, "Each block adds up one row, in shared memory."))
        notebook.start(cells["streaming"])
        cells["streaming"].get_by_text("partial[").first.wait_for()
        keep("streaming")
        interrupt(cells["streaming"])
        keep("cancelled", "streaming")
        found.has_hung_up = asking.hung_up.wait(10)
        notebook.run(cells["after"])
        found.texts["after"] = cells["after"].locator(".jp-OutputArea").inner_text()

        asking.queue(reply(WRONG), silent(RIGHT, "The last chunk of a row was left out."))
        notebook.start(cells["repairing"])
        cells["repairing"].get_by_text("wrong value").first.wait_for()
        cells["repairing"].get_by_text("partial[").first.wait_for()
        keep("repairing")
        cells["repairing"].get_by_role("button", name="Cancel").click()
        notebook.wait_for_end(cells["repairing"])
        found.texts["cancelled by its button"] = cells["repairing"].locator(".jp-OutputArea").inner_text()

        asking.queue(reply(WRONG), reply(CRASHES), reply(RIGHT), Script(text=CORRECTION))
        for name in list(CELLS)[list(CELLS).index("wrong") :]:
            notebook.run(cells[name])
            if name in STATES:
                keep(name)
        found.watched = notebook.watched()
    return found


@pytest.mark.parametrize(
    ("state", "parts"),
    {
        "streaming": ("working · row_sum_cuda", "attempt 1 of 4", "replies-written-by-hand", "__global__"),
        "cancelled": ("interrupted", "KeyboardInterrupt: the cell was stopped; row_sum_cuda"),
        "repairing": ("attempt 2 of 3", "attempt 1 ✗ wrong value", "__global__"),
        "cancelled by its button": (
            "attempt 1 ✗ wrong value",
            "KeyboardInterrupt: the cell was stopped; row_sum_cuda",
        ),
        "wrong": ("wrong value · row_sum_cuda", "expected", "What was not checked", "NotAcceptedError"),
        "crashed": ("row_sum_cuda", "illegal address", "NotAcceptedError"),
        "offline": ("NetworkError", "127.0.0.1"),
        "accepted": ("passed · row_sum_cuda", "generated here", "What was not checked"),
        "replayed": ("passed · row_sum_cuda", "replayed from its record, no provider was asked"),
        "answered": ("What changes in cell", "row_sum_cuda(x.T.copy()).shape", "it was not run"),
        "by-hand": ("passed · row_sum_cuda", "written by hand, no provider was asked"),
    }.items(),
)
def test_a_state_says_what_it_is_in_words(seen, state, parts):
    assert [part for part in parts if part not in seen.texts[state]] == []
    assert "Traceback" not in seen.texts[state]


def test_no_state_is_inaccessible_or_cut_off_in_light_or_dark(seen):
    assert {state: flaws for state, flaws in seen.flaws.items() if flaws} == {}


def test_the_stop_button_closes_the_connection_and_the_next_cell_works(seen):
    assert seen.has_hung_up
    assert seen.texts["after"].strip() == "(64, 1000)"
