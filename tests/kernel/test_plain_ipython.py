"""Without our kernel: the extension in IPython's own kernel, and in a terminal."""

from __future__ import annotations

import subprocess
import sys

from .session import Session


def test_in_ipythons_own_kernel(jupyter, tmp_path):
    with Session.start("python3", cwd=tmp_path) as session:
        session.run("def softmax(x): return x")
        assert "not found" in session.run("%%cuda_from softmax\nfast\n").text
        session.run("%load_ext llmkernel")

        assert session.complete("%%cuda_from softmax --repl") == ["--replay"]
        assert "takes x" in session.run("%%cuda_from softmax\nfast\n").error
        assert "usage" in session.run("%%cuda_from softmax").error
        assert session.run("%config LLMKernel.attempts = 2").reply["status"] == "ok"


def test_in_a_terminal(jupyter, tmp_path):
    cells = "softmax = lambda x: x\n%%cuda_from softmax\nfast {and} $cheap\n\n\n%kernels\n1 + 1\nexit\n"
    done = subprocess.run(
        [sys.executable, "-m", "IPython", "--simple-prompt", "--no-banner", "--ext", "llmkernel"],
        input=cells,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    shown = done.stdout + done.stderr
    assert "softmax takes x, and there is no variable of that name." in shown
    assert "0 kernels in" in shown
    assert ": 2" in shown
