"""What stands below a cell while its kernel is being made."""

from __future__ import annotations

import _thread
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

from llmkernel.display.live_state import FINISHED, LiveState
from llmkernel.display.live_view import live_bundle
from llmkernel.display.surface import Surface, choose_surface
from llmkernel.synthesis.events import SynthesisEvent

MIN_INTERVAL_SECONDS = 0.1
REFRESH_SECONDS = 1.0
_TICK_SECONDS = 0.25


class LiveOutput:
    """Listener of synthesis events that keeps one output up to date and leaves a static report in its place.

    In a notebook one display id is updated at most ten times a second, so that other cells' output never
    mixes with it; in a terminal a line is written where a stage begins or ends; elsewhere nothing is.

    Parameters
    ----------
    name : str
        Name of the kernel that is being made.
    quiet : bool
        Show the end only.
    live : str
        How the way there is shown, see `llmkernel.display.front_end.live_mode`.
    surface : Surface, optional
        Where to show it; default: found from the running IPython.
    clock : callable
        Seconds, rising.
    is_ticking : bool
        Let a thread refresh elapsed times and countdowns while no event comes.

    Examples
    --------
    ::

        with LiveOutput("softmax_cuda") as live:
            kernel = synthesize(reference, intent, on_event=live)
            live.finish(report_bundle(kernel.report, source=kernel.source))
    """

    def __init__(
        self,
        name: str = "",
        *,
        quiet: bool = False,
        live: str = "auto",
        surface: Surface | None = None,
        clock: Callable[[], float] = time.monotonic,
        is_ticking: bool = True,
    ) -> None:
        self._clock = clock
        if surface is None:
            surface = choose_surface(is_quiet=quiet, live=live, on_cancel=self.cancel)
        self._surface = surface
        self._state = LiveState(started=clock(), name=name)
        self._lock = threading.RLock()
        self._shown_at: float | None = None
        self._is_pending = False
        self._is_begun = False
        self._is_closed = False
        self._is_broken = False
        self._ended = threading.Event()
        self._is_ticking = is_ticking and self._surface.is_live
        self._ticker: threading.Thread | None = None

    def __call__(self, event: SynthesisEvent) -> None:
        """Take one event."""
        with self._lock:
            if self._is_closed:
                return
            self._is_begun = True
            line = self._state.apply(event, self._clock())
            if line:
                self._surface.line(f"{self._state.name}: {line}")
            self._is_pending = True
            self._refresh()
        if self._is_ticking and self._ticker is None:
            self._ticker = threading.Thread(target=self._tick_until_end, name="llmkernel-live", daemon=True)
            self._ticker.start()

    def tick(self) -> None:
        """Show what is pending, and let elapsed times move on; called while no event comes."""
        with self._lock:
            if self._is_closed or self._shown_at is None:
                return
            if self._clock() - self._shown_at >= REFRESH_SECONDS:
                self._is_pending = True
            self._refresh()

    def finish(self, bundle: Mapping[str, Any]) -> None:
        """Replace everything by the static `bundle`."""
        with self._lock:
            self._state.closing = self._state.closing or FINISHED
        self._close(dict(bundle))

    def fail(self, result: Mapping[str, Any] | BaseException | None = None) -> None:
        """End without an accepted kernel.

        Parameters
        ----------
        result : mapping or BaseException, optional
            A bundle is shown as it is. For an exception the last attempt's report is shown where there is
            one, else the stages so far and what ended them; KeyboardInterrupt is called an interrupt.
            Where nothing had begun, an error says everything, and nothing is shown.
        """
        if isinstance(result, Mapping):
            self._close(dict(result))
            return
        with self._lock:
            if self._is_closed:
                return
            if isinstance(result, Exception) and not self._is_begun:
                self._is_closed = True
                return
            if isinstance(result, KeyboardInterrupt):
                self._state.closing = "interrupted"
            elif not self._state.closing:
                self._state.closing = "failed" if result is None else f"failed: {type(result).__name__}"
            self._surface.line(f"{self._state.name}: {self._state.closing}")
            bundle = None if isinstance(result, KeyboardInterrupt) else self._last_report()
            self._close(bundle or dict(live_bundle(self._state, self._clock())))

    def interrupt(self) -> None:
        """End with the line ``interrupted`` and what was found so far."""
        self.fail(KeyboardInterrupt())

    def cancel(self) -> None:
        """Stop the main thread as the notebook's stop button does; called from another thread, late calls do nothing."""
        with self._lock:
            if self._is_closed or self._state.is_stopping:
                return
            self._state.is_stopping = self._is_pending = True
            self._refresh()
            interrupt_main_thread()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End whatever was not ended; errors pass through."""
        self.fail(error)

    def _last_report(self) -> dict[str, Any] | None:
        """Return the report of the last attempt that has one, all attempts beside it."""
        from llmkernel.display.bundle import attempts_bundle

        return attempts_bundle(self._state.finished, provider=self._state.provider)

    def _refresh(self) -> None:
        now = self._clock()
        if not self._is_pending or self._is_broken or not self._surface.is_live:
            return
        if self._shown_at is not None and now - self._shown_at < MIN_INTERVAL_SECONDS:
            return
        self._shown_at, self._is_pending = now, False
        try:
            self._surface.show(self._state, now)
        except Exception as error:  # noqa: BLE001 - what is shown on the way must never end a synthesis
            self._is_broken = True
            sys.stderr.write(f"llmkernel: the live output stopped: {type(error).__name__}: {error}\n")

    def _close(self, bundle: dict[str, Any]) -> None:
        with self._lock:
            if self._is_closed:
                return
            # Closed before it is shown: the ticker can only wait for the lock, and then shows nothing more.
            self._is_closed = True
            self._ended.set()
            self._surface.close(bundle)
        if self._ticker is not None and self._ticker is not threading.current_thread():
            self._ticker.join(timeout=1.0)

    def _tick_until_end(self) -> None:
        self._surface.enter_thread()
        while not self._ended.wait(_TICK_SECONDS):
            self.tick()


def interrupt_main_thread() -> None:
    """Raise KeyboardInterrupt in the main thread, also while it waits in a system call."""
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    else:
        _thread.interrupt_main()
