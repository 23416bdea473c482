"""What the front end of a cell can show, and whether its clicks arrive while the cell runs."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any, Literal

# A front end with widgets opens this as soon as it is connected, to ask for the widgets that there are.
CONTROL_TARGET = "jupyter.widget.control"
_ATTRIBUTE = "_llmkernel_front_end_has_widgets"

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


def unwatch_front_end(shell: Any) -> None:
    """Undo `watch_front_end`."""
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
        and for ``auto`` where the front end did not say that it has widgets.
    """
    if wanted == "plain" or not is_attended(shell) or find_spec("ipywidgets") is None:
        return "plain"
    if wanted == "auto":
        return "widget" if getattr(shell, _ATTRIBUTE, False) else "plain"
    return "keep" if wanted == "keep" else "widget"


def is_attended(shell: Any) -> bool:
    """Whether the running cell was sent by a notebook's page: those name the cell, programs that run notebooks do not."""
    kernel = getattr(shell, "kernel", None)
    parent = kernel.get_parent("shell") if kernel is not None and hasattr(kernel, "get_parent") else None
    metadata = parent.get("metadata") if isinstance(parent, dict) else None
    return bool(isinstance(metadata, dict) and metadata.get("cellId"))


def do_clicks_arrive(shell: Any) -> bool:
    """Whether messages of widgets are handled while a cell runs: the front end has made a subshell for them.

    Without one they wait in the queue of the main shell until the cell has ended.
    """
    thread = getattr(getattr(shell, "kernel", None), "shell_channel_thread", None)
    return thread is not None and bool(thread.manager.list_subshell())
