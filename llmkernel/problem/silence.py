"""What a reference prints is not repeated for every draw; what other threads print meanwhile is theirs."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_lock = threading.Lock()
_silent: Counter[int] = Counter()


class _Stream:
    """Stands in for ``sys.stdout`` while any thread is silent."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        if threading.get_ident() in _silent:
            return len(text)
        return int(self.stream.write(text) or 0)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextmanager
def silent_stdout() -> Iterator[None]:
    """Drop what this thread prints; a cell that runs on a subshell beside it prints as ever."""
    me = threading.get_ident()
    with _lock:
        if not _silent:
            sys.stdout = _Stream(sys.stdout)
        _silent[me] += 1
    try:
        yield
    finally:
        with _lock:
            _silent[me] -= 1
            if not _silent[me]:
                del _silent[me]
            if not _silent and isinstance(sys.stdout, _Stream):
                sys.stdout = sys.stdout.stream
