"""Limits of one process: memory, files, processor time, and its end with its parent's."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_OPEN_FILES = 1024
_LEAST_MEMORY_BYTES = 16 << 30
# Of processor time, on top of what a request may take on every core.
_SPARE_CPU_SECONDS = 120


def limit_process(file_bytes: int) -> tuple[str, ...]:
    """Limit this process; return what is limited, in words.

    Parameters
    ----------
    file_bytes : int
        Largest file that it may make, in memory or on disk.

    Notes
    -----
    There is no limit on address space: a CUDA context reserves more of it than any machine has memory. Nor is there one
    on the number of processes, which counts all of the user's and not this worker's.
    """
    try:
        import resource
    except ImportError:
        return ()
    done = []
    for name, words, value in (
        ("RLIMIT_CORE", "no core dumps", 0),
        ("RLIMIT_FSIZE", "size of files", file_bytes),
        ("RLIMIT_NOFILE", "open files", _OPEN_FILES),
        ("RLIMIT_DATA", "memory", max(memory_bytes(), _LEAST_MEMORY_BYTES)),
        ("RLIMIT_MSGQUEUE", "", 0),
    ):
        kind = getattr(resource, name, None)
        if kind is None:
            continue
        _, hard = resource.getrlimit(kind)
        wanted = value if hard == resource.RLIM_INFINITY else min(value, hard)
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(kind, (wanted, wanted))
            done += [words] if words else []
    _be_first_to_go()
    return (*done, "processor time")


def allow_processor_time(seconds: float) -> None:
    """Let this process use `seconds` on every core from now on; beyond that the system ends it."""
    try:
        import resource
    except ImportError:
        return
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    budget = int(time.process_time() + seconds * (os.cpu_count() or 1) + _SPARE_CPU_SECONDS)
    soft = budget if hard == resource.RLIM_INFINITY else min(budget, hard)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))


def within_limits(
    command: Sequence[str], *, cpu_seconds: int, memory_bytes: int, file_bytes: int
) -> list[str]:
    """Return a command that runs `command` within limits: it, and what it starts, never run without them."""
    # In seconds, kilobytes and blocks of 512 bytes (POSIX).
    wanted = (("c", 0), ("t", cpu_seconds), ("d", memory_bytes >> 10), ("f", file_bytes >> 9))
    limits = "; ".join(f"ulimit -{name} {value}" for name, value in wanted)
    return ["/bin/sh", "-c", f'{limits}; exec "$0" "$@"', *command]


def die_with_parent() -> None:
    """Ask Linux to end this process when its parent's ends, however that happens."""
    if sys.platform.startswith("linux"):
        parent = os.getppid()
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)


def _be_first_to_go() -> None:
    """Where memory runs out, the kernel is to end this process and not the notebook's."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def memory_bytes() -> int:
    """Return the machine's memory in bytes."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (OSError, ValueError, AttributeError):
        return 1 << 62
