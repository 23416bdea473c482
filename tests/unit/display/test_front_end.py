"""To whom the live view is shown: what a front end says of its widgets, and what it is asked."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from comm.base_comm import CommManager

from llmkernel.display import front_end
from llmkernel.display.front_end import (
    CONTROL_TARGET,
    ask_front_end,
    live_mode,
    unwatch_front_end,
    watch_front_end,
)
from llmkernel.display.subshell_comm import SubshellComm

pytest.importorskip("ipywidgets", reason="ipywidgets is not installed")


@pytest.fixture
def sent(monkeypatch):
    """Kind and comm of every message to the front end."""
    messages = []
    manager = CommManager()
    monkeypatch.setattr("comm.get_comm_manager", lambda: manager)

    def publish_msg(self, msg_type, data=None, metadata=None, buffers=None, **keys):
        messages.append((msg_type, self.comm_id))

    monkeypatch.setattr(SubshellComm, "publish_msg", publish_msg)
    return messages


def of(sent, kind: str) -> list[str]:
    return [comm for name, comm in sent if name == kind]


def shell_of(*, cell="cell-1", targets=None):
    manager = CommManager()
    manager.targets.update(targets or {})
    metadata = {"cellId": cell} if cell else {}
    kernel = SimpleNamespace(comm_manager=manager, get_parent=lambda channel: {"metadata": metadata})
    return SimpleNamespace(kernel=kernel)


def announce(shell) -> list[str]:
    """Open the control comm as a front end with widgets does; return what it closed."""
    closed = []
    comm = SimpleNamespace(close=lambda: closed.append("closed"))
    shell.kernel.comm_manager.targets[CONTROL_TARGET](comm, {})
    return closed


def test_widgets_are_shown_to_a_front_end_that_says_it_has_them():
    shell = shell_of()
    watch_front_end(shell)
    assert live_mode(shell, "auto") == "plain"

    assert announce(shell) == ["closed"]
    assert live_mode(shell, "auto") == "widget"
    unwatch_front_end(shell)
    assert CONTROL_TARGET not in shell.kernel.comm_manager.targets


@pytest.mark.parametrize("cell", ["", "vscode-notebook-cell:/notebooks/first.ipynb#W0sZmlsZQ=="])
def test_only_a_page_of_jupyter_is_asked_for_its_widgets(sent, cell):
    ask_front_end(shell_of(cell=cell))

    assert sent == []


def test_a_page_that_is_known_to_have_widgets_is_not_asked(sent):
    shell = shell_of()
    watch_front_end(shell)
    announce(shell)
    ask_front_end(shell)

    assert sent == []


def test_what_a_page_was_asked_with_is_gone_when_the_extension_is(sent):
    shell = shell_of()
    ask_front_end(shell)
    assert len(of(sent, "comm_open")) == 3
    unwatch_front_end(shell)

    assert set(of(sent, "comm_close")) == set(of(sent, "comm_open"))
    assert live_mode(shell, "auto") == "plain"


def test_a_target_of_ipywidgets_is_left_alone():
    shell = shell_of(targets={CONTROL_TARGET: print})
    watch_front_end(shell)
    unwatch_front_end(shell)

    assert shell.kernel.comm_manager.targets == {CONTROL_TARGET: print}


@pytest.mark.parametrize(
    ("wanted", "mode"), [("widget", "widget"), ("keep", "keep"), ("plain", "plain"), ("auto", "plain")]
)
def test_a_mode_that_is_asked_for_needs_no_announcement(wanted, mode):
    assert live_mode(shell_of(), wanted) == mode


@pytest.mark.parametrize("wanted", ["auto", "widget", "keep"])
def test_a_notebook_that_nobody_looks_at_gets_no_widgets(wanted):
    shell = shell_of(cell=None)
    watch_front_end(shell)
    announce(shell)

    assert live_mode(shell, wanted) == "plain"
    assert live_mode(SimpleNamespace(kernel=None), wanted) == "plain"


@pytest.mark.parametrize("wanted", ["auto", "widget", "keep"])
def test_without_ipywidgets_everything_is_plain(monkeypatch, wanted):
    monkeypatch.setattr(front_end, "find_spec", lambda name: None)
    shell = shell_of()
    watch_front_end(shell)
    announce(shell)

    assert live_mode(shell, wanted) == "plain"
