"""Options from a configuration file, from the command line, and bad ones."""

from __future__ import annotations

import pytest

from .session import Session


@pytest.fixture
def profile(jupyter, tmp_path, monkeypatch):
    directory = tmp_path / "ipython" / "profile_default"
    directory.mkdir(parents=True)
    monkeypatch.setenv("IPYTHONDIR", str(directory.parent))
    return directory


OPTIONS = "__import__('llmkernel.config').config.get_config(get_ipython())"


def test_a_file_and_the_command_line(profile, tmp_path):
    (profile / "ipython_kernel_config.py").write_text(
        "c.LLMKernel.attempts = 2\nc.LLMKernel.provider = 'library'\n", encoding="utf-8"
    )
    with Session.start("llm-cuda", cwd=tmp_path, extra_arguments=["--LLMKernel.attempts=3"]) as session:
        assert session.value(f"({OPTIONS}.attempts, {OPTIONS}.provider)") == (3, "library")


def test_a_bad_value_does_not_stop_the_kernel(profile, tmp_path):
    (profile / "ipython_kernel_config.py").write_text("c.LLMKernel.attempts = 'many'\n", encoding="utf-8")
    # Names of the standard library in the notebook's directory do not stop it either.
    (tmp_path / "random.py").write_text("raise RuntimeError('not the one you want')\n", encoding="utf-8")
    with Session.start("llm-cuda", cwd=tmp_path) as session:
        session.run("def f(x): return x")
        cell = session.run("%%cuda_from f\nfast\n")

        assert cell.reply["ename"] == "ConfigurationError"
        assert "attempts" in cell.error
        assert session.value("1 + 1") == 2
