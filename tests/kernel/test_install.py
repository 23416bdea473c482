"""`llmkernel install` and `uninstall`, and the command line's front door."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmkernel import __version__
from llmkernel.cli.install import parse_environment
from llmkernel.cli.kernelspec import check_name, resources
from llmkernel.cli.main import COMMANDS
from llmkernel.errors import UsageError

from .conftest import run_cli
from .session import Session


def kernels(prefix: Path) -> Path:
    return prefix / "share" / "jupyter" / "kernels"


def test_install_names_this_interpreter(jupyter):
    directory = kernels(jupyter / "prefix") / "llm-cuda"
    spec = json.loads((directory / "kernel.json").read_text(encoding="utf-8"))

    assert spec["argv"] == [sys.executable, "-m", "llmkernel", "-f", "{connection_file}"]
    assert (spec["language"], spec["interrupt_mode"]) == ("python", "signal")
    assert spec["metadata"] == {"debugger": True, "supported_encryption": ["curve"]}
    assert {p.name for p in directory.iterdir()} == {p.name for p in resources().iterdir()}


def test_name_display_name_and_environment(jupyter, tmp_path, monkeypatch):
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "share" / "jupyter"))
    done = run_cli(
        *("install", "--prefix", str(tmp_path), "--name", "Second", "--display-name", "Zweiter ‹CPU›"),
        *("--env", "LLM_CUDA_TEST=a=b c", "--env", "EMPTY="),
    )
    assert done.returncode == 0, done.stderr
    spec = json.loads((kernels(tmp_path) / "second" / "kernel.json").read_text(encoding="utf-8"))
    assert (spec["display_name"], spec["env"]) == ("Zweiter ‹CPU›", {"LLM_CUDA_TEST": "a=b c", "EMPTY": ""})

    with Session.start("second", cwd=tmp_path) as session:
        assert session.value("__import__('os').environ['LLM_CUDA_TEST']") == "a=b c"

    done = run_cli("uninstall", "--name", "second")
    assert done.returncode == 0, done.stderr
    assert not (kernels(tmp_path) / "second").exists()


def test_installing_again_replaces(tmp_path):
    assert run_cli("install", "--prefix", str(tmp_path), "--display-name", "First").returncode == 0
    assert run_cli("install", "--prefix", str(tmp_path)).returncode == 0

    spec = json.loads((kernels(tmp_path) / "llm-cuda" / "kernel.json").read_text(encoding="utf-8"))
    assert spec["display_name"] == "LLM-CUDA"


def test_another_packages_kernel_is_left_alone(tmp_path):
    directory = kernels(tmp_path) / "python3"
    directory.mkdir(parents=True)
    foreign = json.dumps({"argv": ["python", "-m", "ipykernel_launcher", "-f", "{connection_file}"]})
    (directory / "kernel.json").write_text(foreign, encoding="utf-8")

    for command in ("install", "uninstall"):
        done = run_cli(command, "--prefix", str(tmp_path), "--name", "python3")
        assert done.returncode == 1
        assert (directory / "kernel.json").read_text(encoding="utf-8") == foreign


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (["install", "--prefix", "{file}"], 1, "cannot be written"),
        (["install", "--prefix", "{dir}", "--env", "NOVALUE"], 1, "NAME=VALUE"),
        (["install", "--prefix", "{dir}", "--name", "a/b"], 1, "kernel name"),
        (["install", "--prefix", "{dir}", "--name", ".."], 1, "kernel name"),
        (["install", "--user", "--sys-prefix"], 2, "not allowed with"),
        (["uninstall", "--prefix", "{dir}", "--name", "nowhere"], 1, "no Jupyter kernel called nowhere"),
        (["uninstall", "--name", "nowhere-at-all"], 1, "jupyter kernelspec list"),
        (["instal"], 2, "Did you mean install?"),
        (["frobnicate"], 2, "no command"),
    ],
)
def test_errors_are_readable(tmp_path, arguments, status, says):
    file = tmp_path / "file"
    file.touch()
    done = run_cli(*(a.format(file=file, dir=tmp_path / "dir") for a in arguments))

    assert done.returncode == status
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "dir").exists()


@pytest.mark.skipif(
    os.name == "nt" or os.geteuid() == 0, reason="needs a directory that this user may not write"
)
def test_an_unwritable_prefix(tmp_path):
    tmp_path.chmod(0o500)
    done = run_cli("install", "--prefix", str(tmp_path))
    tmp_path.chmod(0o700)

    assert done.returncode == 1
    assert "--user" in done.stderr


def test_the_front_door():
    assert run_cli("--version").stdout.strip() == f"llmkernel {__version__}"
    shown = run_cli("--help")
    assert shown.returncode == 0
    assert all(command in shown.stdout for command in COMMANDS)
    assert run_cli().returncode == 2
    assert "--env" in run_cli("install", "--help").stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command):
    shown = run_cli(command, "--help")

    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.startswith(f"usage: llmkernel {command}")


@given(
    st.dictionaries(
        st.from_regex(r"[A-Za-z_]\w*", fullmatch=True), st.text(st.characters(exclude_characters="\0"))
    )
)
def test_environment_round_trip(env):
    assert parse_environment([f"{name}={value}" for name, value in env.items()]) == env


@given(st.text())
def test_any_kernel_name_is_taken_or_refused(name):
    try:
        checked = check_name(name)
    except UsageError:
        return
    assert Path(checked).name == checked
    assert checked not in {"", ".", ".."}
