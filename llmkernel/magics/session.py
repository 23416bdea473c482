"""What was run in this session: the cells' texts in order, and the last failure."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass
from typing import Any

_KEPT_CELLS = 200
_ASKS = re.compile(r"\s*%%?(?:ask|llm_usage)\b")


@dataclass(frozen=True)
class RunCell:
    """One executed cell.

    Attributes
    ----------
    number : int or None
        Its execution count.
    text : str
        As it was typed.
    error : BaseException or None
        What ended it.
    """

    number: int | None
    text: str
    error: BaseException | None = None

    @property
    def label(self) -> str:
        """``cell [5]``."""
        return f"cell [{self.number}]" if self.number is not None else "a cell"


class Session:
    """Listener of one shell's ``post_run_cell``; cells that only ask are not part of it.

    Attributes
    ----------
    cells : deque of RunCell
        The last ones, the newest last. The one that runs now is not among them.
    failed : RunCell or None
        The last one that ended in an error, whatever ran since.
    """

    def __init__(self, shell: Any) -> None:
        self.cells: deque[RunCell] = deque(maxlen=_KEPT_CELLS)
        self.failed: RunCell | None = None
        # The cell that loads the extension is told of when it ends.
        for number, text in enumerate(shell.history_manager.input_hist_raw[:-1]):
            if text.strip() and not _ASKS.match(text):
                self.cells.append(RunCell(number, text))

    def __call__(self, result: Any) -> None:
        """Take one execution's result."""
        text = result.info.raw_cell if result.info is not None else ""
        if not isinstance(text, str) or not text.strip() or _ASKS.match(text):
            return
        error = result.error_before_exec or result.error_in_exec
        # The exception only, as the shell itself keeps it; an earlier one is let go with its frames.
        cell = RunCell(result.execution_count, text, error)
        if error is not None:
            if self.failed is not None:
                self._forget(self.failed)
            self.failed = cell
        self.cells.append(cell)

    @property
    def is_last_failed(self) -> bool:
        """Whether the cell before this one ended in an error; an interrupt is none."""
        error = self.cells[-1].error if self.cells else None
        return error is not None and not isinstance(error, KeyboardInterrupt)

    def _forget(self, failed: RunCell) -> None:
        for i, cell in enumerate(self.cells):
            if cell is failed:
                self.cells[i] = RunCell(cell.number, cell.text)


_ATTRIBUTE = "_llmkernel_session"


def register_session(ipython: Any) -> None:
    """Begin to note what `ipython` runs."""
    session = Session(ipython)
    setattr(ipython, _ATTRIBUTE, session)
    ipython.events.register("post_run_cell", session)


def unregister_session(ipython: Any) -> None:
    """Undo `register_session`."""
    session = ipython.__dict__.pop(_ATTRIBUTE, None)
    if session is not None:
        ipython.events.unregister("post_run_cell", session)


def get_session(ipython: Any) -> Session:
    """Return what `ipython` ran; an empty one where nothing was noted."""
    session = getattr(ipython, _ATTRIBUTE, None)
    return session if isinstance(session, Session) else Session(ipython)
