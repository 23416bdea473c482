"""What the front end of a cell can show, and whether its clicks arrive while the cell runs."""

from __future__ import annotations

import re
from contextlib import suppress
from importlib.util import find_spec
from typing import Any, Literal

# A front end with widgets opens this as soon as it is connected, to ask for the widgets that there are.
CONTROL_TARGET = "jupyter.widget.control"
_ATTRIBUTE = "_llmkernel_front_end_has_widgets"
_QUESTION = "_llmkernel_front_end_asked"
# Of the messages between widgets and kernels: jupyter-widgets, packages/schema/messages.md.
_PROTOCOL = "2.1.0"

LiveMode = Literal["widget", "keep", "plain"]


def watch_front_end(shell: Any) -> None:
    """Remember when a front end says that it has widgets; ipywidgets, once imported, answers it instead."""
    manager = _comm_manager(shell)
    if manager is None or CONTROL_TARGET in manager.targets:
        return

    def opened(comm: Any, _: Any) -> None:
        setattr(shell, _ATTRIBUTE, True)
        comm.close()  # as for a target that nobody registered: there are no widgets yet

    manager.register_target(CONTROL_TARGET, opened)


def ask_front_end(shell: Any) -> None:
    """Ask a page that was connected before the extension came whether it has widgets; its answer comes later.

    It is sent two widgets that nobody sees, and a third that links them: a front end that makes them carries the first
    one's width over to the second, and says so. One that has no widgets closes them.
    """
    if _comm_manager(shell) is None or not _is_page(shell) or find_spec("ipywidgets") is None:
        return
    if getattr(shell, _ATTRIBUTE, False):
        return
    opened: list[Any] = []

    def answered(_: Any) -> None:
        setattr(shell, _ATTRIBUTE, True)
        _close(opened)

    setattr(shell, _QUESTION, opened)
    with suppress(Exception):  # a page that cannot be asked gets the plain output
        source = _open(opened, "LayoutModel", "@jupyter-widgets/base", width="1px")
        target = _open(opened, "LayoutModel", "@jupyter-widgets/base", width=None)
        target.on_msg(answered)
        ends = {
            name: [f"IPY_MODEL_{end.comm_id}", "width"]
            for name, end in (("source", source), ("target", target))
        }
        _open(opened, "DirectionalLinkModel", "@jupyter-widgets/controls", **ends)


def _open(opened: list[Any], model: str, module: str, **state: Any) -> Any:
    """Make a widget in the front end without ipywidgets, and remember its comm."""
    from llmkernel.display.subshell_comm import WIDGET_TARGET, SubshellComm

    made_of = {"_model_module": module, "_model_module_version": "2.0.0", "_model_name": model}
    no_view = {"_view_module": None, "_view_module_version": "", "_view_name": None}
    data = {"state": {**made_of, **no_view, **state}, "buffer_paths": []}
    comm = SubshellComm(target_name=WIDGET_TARGET, data=data, metadata={"version": _PROTOCOL})
    opened.append(comm)
    return comm


def _close(comms: list[Any]) -> None:
    while comms:
        with suppress(Exception):
            comms.pop().close()


def unwatch_front_end(shell: Any) -> None:
    """Undo `watch_front_end` and `ask_front_end`."""
    _close(shell.__dict__.pop(_QUESTION, []))
    manager = _comm_manager(shell)
    target = None if manager is None else manager.targets.get(CONTROL_TARGET)
    if getattr(target, "__module__", "") == __name__:
        manager.unregister_target(CONTROL_TARGET, target)


def _comm_manager(shell: Any) -> Any:
    return getattr(getattr(shell, "kernel", None), "comm_manager", None)


def live_mode(shell: Any, wanted: str) -> LiveMode:
    """Return how the cell that runs is shown.

    Parameters
    ----------
    shell : object
        IPython's.
    wanted : str
        ``auto``, ``widget``, ``keep`` or ``plain``.

    Returns
    -------
    str
        ``plain`` where nobody sits in front of the cell (nbclient, papermill), where ipywidgets is not installed,
        and for ``auto`` where the front end has not said that it has widgets.
    """
    if wanted == "plain" or not is_attended(shell) or find_spec("ipywidgets") is None:
        return "plain"
    if wanted == "auto":
        return "widget" if getattr(shell, _ATTRIBUTE, False) else "plain"
    return "keep" if wanted == "keep" else "widget"


def is_attended(shell: Any) -> bool:
    """Whether the running cell was sent by a notebook's page: those name the cell, programs that run notebooks do not."""
    return bool(_cell(shell))


def _is_page(shell: Any) -> bool:
    """Whether a cell of JupyterLab or Notebook 7 runs; VS Code, whose cells are URIs, fetches scripts for any widget."""
    return bool(re.fullmatch(r"[\w-]{1,64}", _cell(shell)))


def _cell(shell: Any) -> str:
    """Return the id of the running cell; empty where none is named."""
    kernel = getattr(shell, "kernel", None)
    parent = kernel.get_parent("shell") if kernel is not None and hasattr(kernel, "get_parent") else None
    metadata = parent.get("metadata") if isinstance(parent, dict) else None
    return str(metadata.get("cellId") or "") if isinstance(metadata, dict) else ""


def do_clicks_arrive(shell: Any) -> bool:
    """Whether messages of widgets are handled while a cell runs: the front end has made a subshell for them.

    Without one they wait in the queue of the main shell until the cell has ended.
    """
    thread = getattr(getattr(shell, "kernel", None), "shell_channel_thread", None)
    return thread is not None and bool(thread.manager.list_subshell())
