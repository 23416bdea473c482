"""A question in JupyterLab: the answer streams in, and the corrected cell stands below, not run."""

from __future__ import annotations

import json

from tests.browser.conftest import asking_notebook
from tests.wire.scripts import Script

ANSWER = """\
The last cell divides by **zero**: `n` is 0 for an empty list.

![a picture](http://192.0.2.1/?x=1) <img src="http://192.0.2.1/i.png">

```python
n = len(values) or 1
print(10 / n)
```
"""


def test_a_correction_streams_in_and_stands_below(asking, lab, jupyter, visit):
    asking.queue(Script(text=ANSWER, thinking="Hm.", chunk=4, delay_s=0.03))
    (jupyter.notebooks / "asked.ipynb").write_text(json.dumps(asking_notebook([""])), encoding="utf-8")
    # `visit` sees to it that nothing is asked of another host: the answer's images are not loaded.
    with visit(height=1000) as notebook:
        notebook.goto(lab.url("lab/workspaces/ask/tree/asked.ipynb"))
        notebook.wait_for_idle_kernel("LLM-CUDA (asking)")
        notebook.run_cell("values = []\nn = len(values)\nprint(10 / n)")
        cell = notebook.start_cell("%ask --fix")
        output = cell.locator(".jp-OutputArea-output")
        output.get_by_text("answering…").wait_for()
        assert "tokens in" not in output.inner_text()
        notebook.wait_for_end(cell)

        output.get_by_text("tokens in").wait_for()
        assert output.count() == 1
        assert output.locator("strong").first.inner_text() == "zero"
        assert "n = len(values) or 1" in output.locator("pre").first.inner_text()
        assert "+print(10 / n)" not in output.inner_text()
        assert "+n = len(values) or 1" in output.locator("pre").last.inner_text()
        assert output.locator("img").count() == 0
        below = notebook.cells.nth(2)
        assert below.locator(".cm-content").inner_text().strip() == "n = len(values) or 1\nprint(10 / n)"
        assert below.locator(".jp-InputPrompt").inner_text().strip() == "[ ]:"
        assert notebook.pictures_of("answer", cell) == []
