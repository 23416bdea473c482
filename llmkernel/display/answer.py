"""An answer in Markdown while it streams, and what is left of it: one static output."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from llmkernel.display import figures
from llmkernel.display.clean import cap, clean
from llmkernel.display.interrupts import uninterrupted
from llmkernel.display.markdown import escape_markdown
from llmkernel.display.safe_markdown import safe_markdown
from llmkernel.display.surface import Surface, TerminalSurface, choose_surface
from llmkernel.providers.base import Event, Reply, Started, TextDelta, Thinking, Waiting

MIN_INTERVAL_SECONDS = 0.1
REFRESH_SECONDS = 1.0
_TICK_SECONDS = 0.2
MAX_CHARACTERS = 200_000
# Every update carries the whole text, and servers cut off a kernel that sends more than 1 MB a second.
_CHARACTERS_PER_SECOND = 200_000


class AnswerOutput:
    """Keeps one output up to date with an answer, and leaves it as Markdown and text.

    In a notebook one display id is updated at most ten times a second, less often where the answer is long;
    in a terminal each line is written once it is whole.

    Parameters
    ----------
    asked : str
        Who is asked, as ``provider · model · effort``.
    sent : str
        What was sent along, in a few words.
    quiet : bool
        Show the end only.
    surface : Surface, optional
        Where to show it; default: found from the running IPython.
    clock : callable
        Seconds, rising.
    is_ticking : bool
        Let a thread show what is pending, and how long it has taken, while no event comes.
    """

    def __init__(
        self,
        asked: str,
        sent: str,
        *,
        quiet: bool = False,
        surface: Surface | None = None,
        clock: Callable[[], float] = time.monotonic,
        is_ticking: bool = True,
    ) -> None:
        self._asked, self._sent = asked, sent
        self._surface = choose_surface(is_quiet=quiet) if surface is None else surface
        self._clock = clock
        self._pieces: list[str] = []
        self._length = 0
        self._status = "asked"
        self._started = clock()
        self._shown_at: float | None = None
        self._is_pending = self._is_broken = self._is_closed = False
        self._lock = threading.RLock()
        self._ended = threading.Event()
        self._is_ticking = is_ticking and self._surface.is_live
        self._is_by_line = isinstance(self._surface, TerminalSurface) and not quiet
        self._open_line = ""
        self._reply: Reply | None = None
        self._extras: list[str] = []

    @property
    def text(self) -> str:
        """What has arrived."""
        return "".join(self._pieces)

    def __call__(self, event: Event) -> None:
        """Take one event of a provider."""
        with self._lock:
            if isinstance(event, TextDelta):
                self._pieces.append(event.text)
                self._length += len(event.text)
                self._status = "answering"
                self._write_lines(event.text)
            elif isinstance(event, Waiting):
                self._status = f"waiting {event.seconds:.0f} s: {event.reason}"
                self._surface.line(f"{self._asked}: {self._status}")
            elif isinstance(event, Started | Thinking):
                self._status = "thinking" if not self._pieces else self._status
            else:
                self._reply = event
            self._is_pending = True
            self._refresh()

    def tick(self) -> None:
        """Show what is pending, and how long it has taken; called while no event comes."""
        with self._lock:
            if self._is_closed or self._shown_at is None:
                return
            self._is_pending |= self._clock() - self._shown_at >= REFRESH_SECONDS and not self._pieces
            self._refresh()

    def note(self, markdown: str) -> None:
        """Add a part below the answer, Markdown of our own."""
        self._extras.append(markdown)

    def finish(self, ending: str = "") -> None:
        """Leave the static output.

        Parameters
        ----------
        ending : str
            What ended it before its end, such as ``interrupted``; empty for a whole answer.
        """
        with self._lock:
            if self._is_closed:
                return
            # Before it is shown: the ticker, waiting for the lock, then shows nothing more.
            self._is_closed = True
            self._ended.set()
            self._surface.close(self._bundle(ending or self._cut_off(), is_over=True))

    def __enter__(self) -> Self:
        self._is_pending = True
        self._refresh()
        if self._is_ticking:
            threading.Thread(target=self._tick_until_end, name="llmkernel-answer", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End whatever was not ended, and keep what has arrived, marked as a part; errors pass through."""
        if error is None:
            self.finish()
            return
        is_interrupt = isinstance(error, KeyboardInterrupt)
        with uninterrupted():
            self.finish("interrupted" if is_interrupt else f"it ended with {type(error).__name__}")
        if is_interrupt:
            told = "KeyboardInterrupt: the question was stopped; what had arrived is not part of the conversation."
            vars(error)["_render_traceback_"] = lambda: [told]

    def _cut_off(self) -> str:
        is_cut = self._reply is not None and self._reply.stop_reason == "max_tokens"
        return "it reached its token limit" if is_cut else ""

    def _write_lines(self, text: str) -> None:
        if not self._is_by_line:
            return
        *whole, self._open_line = (self._open_line + text).split("\n")
        for line in whole:
            self._surface.line(clean(line))

    def _refresh(self) -> None:
        if not self._is_pending or self._is_broken or not self._surface.is_live:
            return
        now = self._clock()
        interval = max(MIN_INTERVAL_SECONDS, 2 * min(self._length, MAX_CHARACTERS) / _CHARACTERS_PER_SECOND)
        if self._shown_at is not None and now - self._shown_at < interval:
            return
        self._shown_at, self._is_pending = now, False
        try:
            self._surface.update(self._bundle("", is_over=False))
        except Exception as error:  # noqa: BLE001 - what is shown on the way must never end an answer
            self._is_broken = True
            sys.stderr.write(f"llmkernel: the live output stopped: {type(error).__name__}: {error}\n")

    def _tick_until_end(self) -> None:
        self._surface.enter_thread()
        while not self._ended.wait(_TICK_SECONDS):
            self.tick()

    def _bundle(self, ending: str, *, is_over: bool) -> dict[str, Any]:
        answer = cap(self.text, MAX_CHARACTERS).strip("\n")
        waited = round(self._clock() - self._started)
        byline = self._byline() if is_over else f"{self._asked} · {self._status}… {waited} s"
        part = (
            f"Partial answer: {ending}." if ending and answer else f"No answer: {ending}." if ending else ""
        )
        markdown = [
            safe_markdown(answer),
            f"**{part}**" if part else "",
            *self._extras,
            f"*{escape_markdown(byline)}*",
        ]
        # A terminal has the answer's lines already, but for one that was not whole.
        plain = self._open_line if self._is_by_line else answer
        text = [clean(plain), part, *self._extras, byline]
        return {
            "text/markdown": "\n\n".join(p for p in markdown if p) + "\n",
            "text/plain": "\n\n".join(p for p in text if p),
        }

    def _byline(self) -> str:
        parts = [self._asked, f"sent: {self._sent}"]
        if self._reply is not None:
            parts.append(usage_text(self._reply))
        return " · ".join(parts)


def usage_text(reply: Reply) -> str:
    """Return ``1 200 tokens in (1 000 cached), 300 out, 0.0042 USD``, without what is not known."""
    usage = reply.usage
    if not (usage.input_tokens or usage.output_tokens):
        return "tokens not told"
    grouped = figures.grouped
    cached = f" ({grouped(usage.cached_tokens)} cached)" if usage.cached_tokens else ""
    parts = [f"{grouped(usage.input_tokens)} tokens in{cached}", f"{grouped(usage.output_tokens)} out"]
    return ", ".join([*parts, *filter(None, [figures.money(reply.cost_usd)])])


def publish_note(markdown: str, surface: Surface | None = None) -> None:
    """Show one static part below what a cell has shown, Markdown of our own."""
    shown = choose_surface() if surface is None else surface
    shown.close({"text/markdown": markdown + "\n", "text/plain": markdown})
