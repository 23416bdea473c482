"""Where live output goes: a notebook, a terminal, or nowhere."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TextIO

from llmkernel.display.clean import clean
from llmkernel.display.front_end import live_mode

if TYPE_CHECKING:
    from llmkernel.display.live_state import LiveState


class Surface:
    """Shows nothing; base of the others.

    Attributes
    ----------
    is_live : bool
        Takes updates in place.
    """

    is_live = False

    def show(self, state: LiveState, now: float) -> None:
        """Show how far a synthesis is at the time `now`."""
        from llmkernel.display.live_view import live_bundle

        self.update(live_bundle(state, now))

    def update(self, bundle: dict[str, Any]) -> None:
        """Show `bundle` in place of what was shown before."""

    def line(self, text: str) -> None:
        """Show one line that stays."""

    def close(self, bundle: dict[str, Any]) -> None:
        """Show the end."""

    def enter_thread(self) -> None:
        """Let the calling thread show things too."""


class NotebookSurface(Surface):
    """One display id of a Jupyter front end."""

    def __init__(self, shell: Any, *, is_quiet: bool = False) -> None:
        self.is_live = not is_quiet
        self._shell = shell
        self._parent = shell.get_parent() if hasattr(shell, "get_parent") else None
        self._handle: Any = None

    def update(self, bundle: dict[str, Any]) -> None:
        """Show `bundle` under the display id."""
        if self._handle is not None:
            self._handle.update(bundle, raw=True)
            return
        from IPython.display import display

        self._handle = display(bundle, raw=True, display_id=True)

    def close(self, bundle: dict[str, Any]) -> None:
        """Leave `bundle` under the same display id."""
        self.update(bundle)

    def enter_thread(self) -> None:
        """Give the calling thread this cell's message as its parent: other cells' output never mixes in."""
        if self._parent is not None and hasattr(self._shell, "set_thread_parent"):
            self._shell.set_thread_parent(self._parent)


class TerminalSurface(Surface):
    """Lines on a terminal; IPython there prints every update, so that only stages are worth one.

    Parameters
    ----------
    stream : TextIO
    is_report_shown : bool
        Print the whole report at the end (IPython), not its first lines only (a script).
    is_quiet : bool
    """

    def __init__(self, stream: TextIO, *, is_report_shown: bool, is_quiet: bool = False) -> None:
        self._stream = stream
        self._is_report_shown = is_report_shown
        self._is_quiet = is_quiet

    def line(self, text: str) -> None:
        """Print `text`."""
        if not self._is_quiet:
            self._write(clean(text))

    def close(self, bundle: dict[str, Any]) -> None:
        """Print the report, or its first two lines."""
        text = str(bundle.get("text/plain", ""))
        if not self._is_report_shown:
            text = "\n".join(text.split("\n")[:2])
        if text and (self._is_report_shown or not self._is_quiet):
            self._write(text)

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text + "\n")
            self._stream.flush()
        except UnicodeEncodeError:  # a terminal without ✓ still gets the words
            encoding = self._stream.encoding or "ascii"
            self._stream.write(text.encode(encoding, "replace").decode(encoding) + "\n")


def choose_surface(
    *, is_quiet: bool = False, live: str = "plain", on_cancel: Callable[[], None] | None = None
) -> Surface:
    """Return the surface for where this runs; IPython is not imported for it.

    Parameters
    ----------
    is_quiet : bool
    live : str
        ``auto``, ``widget``, ``keep`` or ``plain``: see `llmkernel.display.front_end.live_mode`.
    on_cancel : callable, optional
        What the cancel button of a widget calls, from a thread.
    """
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is not None and getattr(shell, "kernel", None) is not None:
        mode = "plain" if is_quiet else live_mode(shell, live)
        if mode != "plain":
            from llmkernel.display.widget_surface import WidgetSurface

            return WidgetSurface(shell, keeps=mode == "keep", on_cancel=on_cancel)
        return NotebookSurface(shell, is_quiet=is_quiet)
    if shell is not None:
        return TerminalSurface(sys.stdout, is_report_shown=True, is_quiet=is_quiet)
    if sys.stderr is not None and sys.stderr.isatty():
        return TerminalSurface(sys.stderr, is_report_shown=False, is_quiet=is_quiet)
    return Surface()
