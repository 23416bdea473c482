from __future__ import annotations

from types import SimpleNamespace

from llmkernel.magics.notebook import notebook_directory, notebook_path


def shell(start, **namespace):
    return SimpleNamespace(user_ns=namespace, starting_dir=str(start))


def test_the_servers_session_name_wins(tmp_path):
    here, code = tmp_path / "here", tmp_path / "code"
    here.mkdir()
    code.mkdir()

    both = {"__session__": str(here / "a.ipynb"), "__vsc_ipynb_file__": str(code / "b.ipynb")}
    assert notebook_directory(shell(tmp_path, **both)) == here
    assert notebook_path(shell(tmp_path, **both)) is None, "not saved yet"
    (here / "a.ipynb").touch()
    assert notebook_path(shell(tmp_path, **both)) == here / "a.ipynb"
    assert notebook_directory(shell(tmp_path, __vsc_ipynb_file__=both["__vsc_ipynb_file__"])) == code


def test_paths_that_say_nothing_here_are_passed_over(tmp_path):
    for path in ("RTC:a.ipynb", "sub/a.ipynb", str(tmp_path / "gone" / "a.ipynb"), 3, ""):
        assert notebook_directory(shell(tmp_path, __session__=path)) == tmp_path
        assert notebook_path(shell(tmp_path, __session__=path)) is None


def test_it_does_not_follow_a_change_of_directory(tmp_path, monkeypatch):
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")

    assert notebook_directory(shell(tmp_path)) == tmp_path
    assert notebook_directory(shell(tmp_path / "gone")) == tmp_path / "other"
