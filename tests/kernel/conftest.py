"""Real kernels: a kernelspec that `llmkernel install` wrote, started through jupyter_client."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import llmkernel

from .session import Session

SOURCES = str(Path(llmkernel.__file__).parent.parent)


def kernel_environment(directory: Path) -> dict[str, str]:
    """Variables under which Jupyter knows only our kernelspec, and nobody's own configuration."""
    return {
        "JUPYTER_PATH": str(directory / "prefix" / "share" / "jupyter"),
        "JUPYTER_DATA_DIR": str(directory / "data"),
        "JUPYTER_CONFIG_DIR": str(directory / "config"),
        "JUPYTER_RUNTIME_DIR": str(directory / "runtime"),
        "IPYTHONDIR": str(directory / "ipython"),
        "PYTHONPATH": os.pathsep.join(filter(None, [SOURCES, os.environ.get("PYTHONPATH")])),
    }


def run_cli(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "llmkernel", *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture(scope="session")
def jupyter(tmp_path_factory):
    """The environment of a Jupyter that has our kernel installed; yields its directory."""
    directory = tmp_path_factory.mktemp("jupyter")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in kernel_environment(directory).items():
            patch.setenv(name, value)
        done = run_cli("install", "--prefix", str(directory / "prefix"))
        assert done.returncode == 0, done.stderr
        yield directory


@pytest.fixture(scope="module")
def session(jupyter, tmp_path_factory):
    """One kernel for a module's tests."""
    with Session.start("llm-cuda", cwd=tmp_path_factory.mktemp("notebooks")) as running:
        yield running
