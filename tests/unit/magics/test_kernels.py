from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmkernel.errors import LLMKernelError, RecordError, UsageError
from llmkernel.magics.kernel_names import split_name
from llmkernel.providers.errors import MissingKeyError

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


def test_the_list_names_every_kernel_and_what_cannot_be_read(kernels, tmp_path):
    (tmp_path / "kernels" / "torn").mkdir()
    (tmp_path / "kernels" / "torn" / "record.json").write_text("{", encoding="utf-8")
    shown = kernels("")

    assert "1 kernel in" in shown
    assert "rows_cuda" in shown
    assert "claude · m" in shown
    assert "✓ passed" in shown
    assert "not timed" in shown
    assert "2026-05-01 08:00" in shown
    assert "torn" in shown


def test_no_kernels_yet(shell, tmp_path, capsys):
    shell.user_ns["__session__"] = str(tmp_path / "a.ipynb")
    shell.run_line_magic("kernels", "")

    assert "0 kernels" in capsys.readouterr().out


def test_versions_are_numbered_backwards_shown_and_put_back(kernels, tmp_path):
    place = tmp_path / "kernels" / "rows_cuda" / "kernel.cu"
    shown = kernels("history rows_cuda")
    assert shown.index("rows_cuda@0") < shown.index("in place") < shown.index("rows_cuda@1")
    assert SOURCE in kernels("show rows_cuda@1")
    shown = kernels("show rows_cuda")
    assert NEWER in shown
    assert "Right on every workload." in shown

    assert "Run the cell that makes rows_cuda" in kernels("rollback rows_cuda 1")

    assert place.read_text(encoding="utf-8") == SOURCE
    # What was in place is the version before it now, so that one step undoes it.
    kernels("rollback rows_cuda 1")
    assert place.read_text(encoding="utf-8") == NEWER
    assert "version in place" in kernels("rollback rows_cuda 0")


def test_an_edited_source_is_not_shown_under_the_report_of_another(kernels, tmp_path):
    (tmp_path / "kernels" / "rows_cuda" / "kernel.cu").write_text(SOURCE + "// changed\n", encoding="utf-8")
    shown = kernels("show rows_cuda")

    assert "// changed" in shown
    assert "edited since" in shown
    assert "Right on every workload." not in shown
    assert "edited since" in kernels("list rows_cuda")


def test_a_diff_is_of_two_kernels_or_of_a_kernel_and_the_version_before_it(kernels, tmp_path):
    save_record(tmp_path / "kernels", "other_cuda", SOURCE + "// more\n")

    for line in ("diff rows_cuda", "diff rows_cuda@1 rows_cuda"):
        shown = kernels(line)
        assert "rows_cuda@1 → rows_cuda: +1 −1 lines" in shown
        assert "-__global__ void f() {}" in shown
        assert "+__global__ void  f() {}" in shown
    assert "+// more" in kernels("diff rows_cuda@1 other_cuda")
    assert "unchanged" in kernels("diff rows_cuda rows_cuda")


def test_an_edit_opens_a_cell_with_the_source(kernels, shell):
    shown = kernels("edit rows_cuda@1")
    assert shell.rl_next_input == f"%%cuda rows_cuda --from f\n{SOURCE.rstrip()}"
    assert "not run" in shown
    assert "There is no f in this notebook yet" in shown

    shell.run_cell(
        "%%cuda rows_cuda --from rows.forward --device cpu --shapes N=3\n" + SOURCE, store_history=True
    )
    kernels("edit rows_cuda")
    line, source = shell.rl_next_input.split("\n", 1)
    assert line == "%%cuda rows_cuda --from rows.forward --device cpu --shapes N=3"
    assert source == NEWER.rstrip()


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
        ("show rows_cuda@then", RecordError, "version then"),
        ("show rows_cuda@7", RecordError, "version 7"),
        ("diff rows_cuda@1", RecordError, "version 2"),
        ("edit row_cuda", RecordError, "Did you mean rows_cuda?"),
        ("rollback rows_cuda", UsageError, "number of a version"),
        ("rollback rows_cuda then", RecordError, "then"),
        ("rollback rows_cuda@1 1", UsageError, "rollback takes"),
        ("compare rows_cuda", UsageError, "two kernels"),
        ("compare rows_cuda rows_cuda@0", UsageError, "one kernel"),
        ("compare rows_cuda rows_cuda@1", UsageError, "not a kernel of this notebook"),
        ("profile rows_cuda", UsageError, "not a kernel of this notebook"),
        ("profile rows_cuda@1", UsageError, "not in the notebook"),
        ("explain rows_cuda@1", UsageError, "kernel in place"),
        ("explain rows_cuda", MissingKeyError, "needs a provider"),
        ("show ../rows", UsageError, "not the name of a kernel"),
        ("list a b", UsageError, "%kernels does not know"),
        ("list --al", UsageError, "%kernels has no option --al"),
    ],
)
def test_errors_are_readable(kernels, line, kind, says):
    with pytest.raises(LLMKernelError, match=says) as caught:
        kernels(line)
    assert isinstance(caught.value, kind)
    assert caught.value.next_step


@given(st.text(max_size=20) | st.from_regex(r"[a-z]{1,3}@?[0-9]{0,2}", fullmatch=True))
def test_any_name_is_read_or_refused(text):
    try:
        name, version = split_name(text)
    except UsageError:
        return
    assert name.isidentifier()
    assert version != "0"
    assert text.startswith(name)
