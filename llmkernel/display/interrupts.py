"""An output that is being closed is closed: a second press of the stop button comes too late for it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Ignore interrupts meanwhile, where this thread is the one that gets them; keep it short."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        # None: a handler that was not set from Python cannot be set again from there.
        signal.signal(signal.SIGINT, signal.default_int_handler if before is None else before)
