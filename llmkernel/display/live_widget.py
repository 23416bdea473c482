"""The live view as widgets; the only module that imports ipywidgets, and imported only where a view is shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ipywidgets import HTML, Button, Checkbox, HBox, VBox, Widget, __protocol_version__

from llmkernel.display import live_panels as panels
from llmkernel.display.live_state import LiveState
from llmkernel.display.live_style import live_style_sheet
from llmkernel.display.markup import Markup, tag
from llmkernel.display.style import root_class
from llmkernel.display.subshell_comm import WIDGET_TARGET, SubshellComm

VIEW_MIME = "application/vnd.jupyter.widget-view+json"
# A front end makes its subshell when the first widget reaches it.
GRACE_SECONDS = 3.0
_LATE = (
    "Here clicks arrive only when the cell has ended: stop it with the notebook’s own stop button "
    "(in command mode, press I twice)."
)


class _ReachableWidget(Widget):  # type: ignore[misc]
    """A widget that hears of clicks while the main thread works; its state holds no binary data."""

    comm: Any

    def open(self) -> None:
        """Open a comm unless there is one."""
        if self.comm is None:
            self.comm = SubshellComm(
                target_name=WIDGET_TARGET,
                data={"state": self.get_state(), "buffer_paths": []},
                metadata={"version": __protocol_version__},
            )


class _ReachableButton(_ReachableWidget, Button):  # type: ignore[misc]
    pass


class _ReachableCheckbox(_ReachableWidget, Checkbox):  # type: ignore[misc]
    # Not a drop-down: in JupyterLab's command mode its arrow keys and letters are the notebook's.
    pass


class LiveWidget:
    """The widgets of one synthesis.

    Parameters
    ----------
    on_cancel : callable
        Called from the thread in which the click is handled.

    Attributes
    ----------
    box : ipywidgets.VBox
        All of them: what goes on, the comparison of two attempts, each finished attempt, what was sent.
    """

    def __init__(self, on_cancel: Callable[[], None]) -> None:
        self._state: LiveState | None = None
        self._shown_at: float | None = None
        self._boxes: dict[int, Any] = {}
        self._chosen: list[int] = []
        self.cancel = _ReachableButton(
            description="Cancel", icon="stop", tooltip="Stop this cell; the notebook’s variables stay"
        )
        self.cancel.on_click(lambda _: on_cancel())
        self.hint = HTML()
        self.announced = HTML()
        self.now = HTML()
        self.choices = HBox([HTML(tag("span", "Compare two attempts:", cls="mut"))])
        self.compared = HTML()
        self.comparison = VBox([self.choices, self.compared])
        self.finished = VBox()
        self.sent = VBox()
        self._bar = HBox([self.cancel, self.hint])
        self._style = HTML(Markup(f"<style>{live_style_sheet()}</style>"))
        self.box = VBox(
            [self._style, self.announced, self._bar, self.now, self.comparison, self.finished, self.sent]
        )
        for widget, names in (
            (self.box, (root_class(), "live")),
            (self.announced, ("spoken",)),
            (self._style, ("unseen",)),
            (self._bar, ("tools",)),
            (self.comparison, ("choose",)),
        ):
            for name in names:
                widget.add_class(name)
        self.comparison.layout.display = "none"

    def update(self, state: LiveState, now: float, *, do_clicks_arrive: bool) -> None:
        """Show `state`; only widgets whose content has changed send anything."""
        self._state = state
        self.now.value = panels.now_html(state, now)
        self.announced.value = tag("div", panels.announcement(state), role="status")
        self.cancel.disabled = state.is_stopping or bool(state.closing)
        self.cancel.description = "Stopping…" if state.is_stopping else "Cancel"
        self._shown_at = now if self._shown_at is None else self._shown_at
        is_late = not do_clicks_arrive and now - self._shown_at > GRACE_SECONDS
        self.cancel.layout.display = "none" if is_late else None
        self.hint.value = tag("p", _LATE, cls="meta") if is_late else ""
        self._add_sent(state)
        self._add_attempts(state)

    def finish(self, state: LiveState, now: float) -> None:
        """Leave the view to explore: nothing runs that could be cancelled."""
        self.update(state, now, do_clicks_arrive=True)
        self._bar.layout.display = "none"

    @property
    def view(self) -> dict[str, Any]:
        """What an output holds to show the widgets."""
        return {"version_major": 2, "version_minor": 0, "model_id": self.box.model_id}

    def close(self) -> None:
        """Close every widget and what belongs to it."""
        for widget in list(_with_parts([self.box])):
            widget.close()

    def _add_sent(self, state: LiveState) -> None:
        shown = len(self.sent.children)
        if shown == len(state.prompts):
            return
        earlier = [m for p in state.prompts[:shown] for m in p.messages]
        added = []
        for prompt in state.prompts[shown:]:
            added.append(HTML(panels.sent_html(prompt, earlier)))
            earlier += prompt.messages
        self.sent.children = (*self.sent.children, *added)

    def _add_attempts(self, state: LiveState) -> None:
        shown = len(self.finished.children)
        if shown == len(state.finished):
            return
        sources = [a.source for a in state.finished[:shown] if a.source is not None]
        previous = sources[-1] if sources else None
        added = []
        for attempt in state.finished[shown:]:
            added.append(HTML(panels.attempt_html(attempt, previous)))
            previous = attempt.source or previous
        self.finished.children = (*self.finished.children, *added)
        self._offer(panels.choices(state.finished))

    def _offer(self, choices: Sequence[tuple[str, int]]) -> None:
        """Offer the attempts that can be compared, the last two to begin with."""
        for label, number in choices:
            if number not in self._boxes:
                box = _ReachableCheckbox(description=label, indent=False)
                box.observe(lambda change, number=number: self._choose(number, change["new"]), "value")
                self._boxes[number] = box
                self.choices.children = (*self.choices.children, box)
        if len(choices) > 1:
            self._chosen = [number for _, number in choices[-2:]]
            self.comparison.layout.display = None
            self._compare()

    def _choose(self, number: int, is_chosen: bool) -> None:  # noqa: FBT001
        """Take a click: two attempts are compared, the one that was chosen first gives way to a third."""
        if is_chosen == (number in self._chosen):
            return
        others = [n for n in self._chosen if n != number]
        self._chosen = [*others[-1:], number] if is_chosen else others
        self._compare()

    def _compare(self) -> None:
        for number, box in self._boxes.items():
            box.value = number in self._chosen
        if self._state is not None:
            self.compared.value = panels.comparison_html(self._state.finished, sorted(self._chosen))


def _with_parts(widgets: Iterable[Any]) -> Iterable[Any]:
    for widget in widgets:
        yield from _with_parts(getattr(widget, "children", ()))
        yield widget
        for part in ("layout", "style"):
            if isinstance(getattr(widget, part, None), Widget):
                yield getattr(widget, part)
