"""A notebook's output that holds widgets while the cell runs, and the static report in their place at the end."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from llmkernel.display.front_end import do_clicks_arrive
from llmkernel.display.live_view import live_bundle
from llmkernel.display.surface import NotebookSurface

if TYPE_CHECKING:
    from llmkernel.display.live_state import LiveState
    from llmkernel.display.live_widget import LiveWidget

# Kept views by name: running a cell again closes what its last run left.
_KEPT: dict[str, LiveWidget] = {}
_KEPT_NOTE = "The live view of {name}, kept while its kernel runs; the report above stands without it."


class WidgetSurface(NotebookSurface):
    """One display id: first the widgets, at the end the report. Kept widgets get an output of their own below it.

    Parameters
    ----------
    shell : object
        IPython's.
    keeps : bool
        Leave the widgets to explore.
    on_cancel : callable, optional
        What the cancel button calls.
    """

    def __init__(
        self, shell: Any, *, keeps: bool = False, on_cancel: Callable[[], None] | None = None
    ) -> None:
        super().__init__(shell)
        self._keeps = keeps
        self._on_cancel = on_cancel or (lambda: None)
        self._widget: LiveWidget | None = None
        self._last: tuple[LiveState, float] | None = None
        self._is_plain = False

    def show(self, state: LiveState, now: float) -> None:
        """Update the widgets; a record that is looked up is over too soon for any."""
        is_quick = self._widget is None and all(stage.name == "replay" for stage in state.stages)
        if self._is_plain or is_quick:
            super().show(state, now)
            return
        self._last = state, now
        if self._widget is not None:
            self._widget.update(state, now, do_clicks_arrive=do_clicks_arrive(self._shell))
            return
        try:
            view = self._make(state, now)
        except Exception:  # noqa: BLE001 - an ipywidgets that does not work is as good as none
            self._widget, self._is_plain = None, True
            view = {}
        # A front end without widgets shows the HTML instead.
        self.update({**view, **live_bundle(state, now)})

    def _make(self, state: LiveState, now: float) -> dict[str, Any]:
        from llmkernel.display.live_widget import VIEW_MIME, LiveWidget

        if state.name in _KEPT:
            _KEPT.pop(state.name).close()
        self._widget = LiveWidget(self._on_cancel)
        self._widget.update(state, now, do_clicks_arrive=True)
        return {VIEW_MIME: self._widget.view}

    def close(self, bundle: dict[str, Any]) -> None:
        """Put `bundle` in the place of the widgets."""
        super().close(bundle)
        widget, self._widget = self._widget, None
        if widget is None or self._last is None:
            return
        # The report is shown: what the widgets do now must not fail the cell.
        with contextlib.suppress(Exception):
            if self._keeps:
                self._keep(widget, *self._last)
            else:
                widget.close()

    def _keep(self, widget: LiveWidget, state: LiveState, now: float) -> None:
        from IPython.display import display

        from llmkernel.display.live_widget import VIEW_MIME

        widget.finish(state, now)
        _KEPT[state.name] = widget
        note = _KEPT_NOTE.format(name=state.name)
        display({VIEW_MIME: widget.view, "text/plain": note}, raw=True)
