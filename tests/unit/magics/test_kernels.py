from __future__ import annotations

import pytest

from llmkernel.errors import LLMKernelError, RecordError, UsageError

from .conftest import SOURCE, save_record

NEWER = SOURCE.replace("void f", "void  f")


@pytest.fixture
def kernels(shell, tmp_path, capsys):
    """Run ``%kernels`` beside a directory that holds one kernel in two versions."""
    shell.user_ns["__session__"] = str(tmp_path / "a.ipynb")
    save_record(tmp_path / "kernels", "rows_cuda")
    save_record(tmp_path / "kernels", "rows_cuda", NEWER, "2026-05-01T08:00:00Z")

    def run(line):
        shell.run_line_magic("kernels", line)
        return capsys.readouterr().out

    return run


def version_of(shown):
    return next(
        line.split()[-1] for line in shown.splitlines() if "version" in line and "in place" not in line
    )


def test_the_list_names_every_kernel_and_what_cannot_be_read(kernels, tmp_path):
    (tmp_path / "kernels" / "torn").mkdir()
    (tmp_path / "kernels" / "torn" / "record.json").write_text("{", encoding="utf-8")
    shown = kernels("")

    assert "1 kernel in" in shown
    assert "rows_cuda" in shown
    assert "claude · m" in shown
    assert "torn" in shown


def test_no_kernels_yet(shell, tmp_path, capsys):
    shell.user_ns["__session__"] = str(tmp_path / "a.ipynb")
    shell.run_line_magic("kernels", "")

    assert "0 kernels" in capsys.readouterr().out


def test_an_earlier_version_is_shown_and_put_back(kernels, tmp_path):
    place = tmp_path / "kernels" / "rows_cuda" / "kernel.cu"
    assert place.read_text(encoding="utf-8") == NEWER
    version = version_of(kernels("history rows_cuda"))
    assert SOURCE in kernels(f"source rows_cuda --version {version}")
    assert NEWER in kernels("source rows_cuda")

    kernels(f"restore rows_cuda --version {version}")

    assert place.read_text(encoding="utf-8") == SOURCE


def test_export_writes_a_new_file_only(kernels, tmp_path):
    kernels("export rows_cuda")
    assert (tmp_path / "rows_cuda.cu").read_text(encoding="utf-8") == NEWER
    with pytest.raises(RecordError, match="new file"):
        kernels("export rows_cuda")
    kernels("export rows_cuda --to second.cu")
    assert (tmp_path / "second.cu").is_file()


@pytest.mark.parametrize(
    ("line", "kind", "says"),
    [
        ("history", UsageError, "name of a kernel"),
        ("histroy rows_cuda", UsageError, "history"),
        ("history row_cuda", RecordError, "Did you mean rows_cuda?"),
        ("source rows_cuda --version then", RecordError, "version then"),
        ("restore rows_cuda", UsageError, "--version"),
        ("restore rows_cuda --version then", RecordError, "then"),
        ("list a b", UsageError, "%kernels does not know"),
        ("list --al", UsageError, "%kernels has no option --al"),
    ],
)
def test_errors_are_readable(kernels, line, kind, says):
    with pytest.raises(LLMKernelError, match=says) as caught:
        kernels(line)
    assert isinstance(caught.value, kind)
    assert caught.value.next_step
