"""Plain IPython in a terminal, with the extension and the library."""

from __future__ import annotations

import re
import sys

import pytest

pexpect = pytest.importorskip("pexpect", reason="pexpect is not installed")

_COLOUR = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[=>]")
_PROMPT = r"In \[(\d+)\]: "


def test_a_cell_in_ipython_prints_a_readable_report(jupyter, tmp_path):
    environment = {**jupyter.environment, "TERM": "dumb", "COLUMNS": "80"}
    command = [
        *("-m", "IPython", "--simple-prompt", "--no-banner", "--no-confirm-exit", "--colors=nocolor"),
        "--no-autoindent",
    ]
    terminal = pexpect.spawn(
        sys.executable,
        command,
        cwd=str(tmp_path),
        env=environment,
        encoding="utf-8",
        timeout=90,
        dimensions=(50, 80),
    )
    try:
        terminal.expect(_PROMPT)
        for line in (
            "%load_ext llmkernel",
            "import numpy as np",
            "x = np.linspace(-3, 3, 1000, dtype=np.float32)",
            "relu = lambda x: np.maximum(x, 0)",
        ):
            terminal.sendline(line)
            terminal.expect(_PROMPT)
        terminal.sendline("%%cuda_from relu --provider library --device cpu")
        terminal.expect(r"\.\.\.: ")
        terminal.sendline("One thread an element.")
        terminal.expect(r"\.\.\.: ")
        # A cell magic ends with a blank line, and here the line before it is one more.
        terminal.sendline("")
        terminal.expect(r"\.\.\.: ")
        terminal.sendline("")
        terminal.expect(_PROMPT)
        printed = _COLOUR.sub("", terminal.before).replace("\r\n", "\n")
        terminal.sendline("float(relu_cuda(x).sum()) == float(relu(x).sum())")
        terminal.expect("True")
        terminal.sendline("exit")
        terminal.expect(pexpect.EOF)
    finally:
        terminal.close(force=True)

    assert "✓ passed · relu_cuda" in printed
    assert "What was not checked" in printed
    assert "<div" not in printed
    assert "\x1b" not in printed
    report = printed[printed.index("✓ passed · relu_cuda") :]
    assert max(map(len, report.split("\n"))) <= 80
