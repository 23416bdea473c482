"""What must hold after every step: processes, descriptors, threads, memory, files, arrays."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import hashlib
import os
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from llmkernel.evaluation.timing import BASELINES
from llmkernel.evaluation.worker.client import POOL, Worker
from llmkernel.records.store import RecordStore

# What a live worker costs this process: three pipes, and an owner, a writer and a listener.
PER_WORKER_FILES = 3
PER_WORKER_THREADS = 3
SETTLE_SECONDS = 8.0
_PAGE = os.sysconf("SC_PAGE_SIZE")


def workers() -> list[Worker]:
    found = [
        w
        for p in (POOL, BASELINES)
        for kept in (p._current.values(), p._spare.values(), p._lent)
        for w in kept
    ]
    return [w for w in found if w.is_alive]


class Processes:
    """Every process that this one started, and what those started: all are of a session that is known here."""

    def __init__(self) -> None:
        self.sessions: set[int] = set()
        original = subprocess.Popen._execute_child

        def remember(popen: Any, *arguments: Any) -> None:
            original(popen, *arguments)
            self.sessions.add(popen.pid)

        subprocess.Popen._execute_child = remember

    def alive(self) -> dict[int, str]:
        """Return process ids and names; zombies of ours count, for nobody would ever reap them."""
        found = {}
        for entry in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError, IndexError, ValueError):
                text = entry.read_text()
                name, rest = text.split("(", 1)[1].rsplit(")", 1)
                state, parent, _, session = rest.split()[:4]
                pid = int(entry.parent.name)
                if int(parent) == os.getpid() or (int(session) in self.sessions and state != "Z"):
                    found[pid] = f"{name} ({state})"
        return found

    def left_over(self) -> dict[int, str]:
        """Wait until only the workers are left, and return what is left besides."""
        limit = time.monotonic() + SETTLE_SECONDS
        while True:
            wanted = {w.pid for w in workers()}
            extra = {p: n for p, n in self.alive().items() if p not in wanted}
            if not extra or time.monotonic() > limit:
                # A session that has ended is nobody's: its number may come back as a stranger's.
                self.sessions &= {os.getsid(p) for p in (*wanted, *extra) if Path(f"/proc/{p}").exists()}
                return extra
            time.sleep(0.02)


def digest(values: Mapping[str, Any]) -> str:
    h = hashlib.sha256()
    for name in sorted(values):
        value = values[name]
        if isinstance(value, np.ndarray):
            h.update(f"{name} {value.dtype} {value.shape} {value.ctypes.data}".encode() + value.tobytes())
        else:
            h.update(f"{name} {value!r}".encode())
    return h.hexdigest()


def resident_bytes() -> int:
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE


def own_files() -> int:
    """Return how many descriptors are open but for those of live workers."""
    return len(list(Path("/proc/self/fd").iterdir())) - PER_WORKER_FILES * len(workers())


def open_files() -> dict[str, int]:
    """Return what the descriptors of this process are of, with how many of each."""
    names: Counter[str] = Counter()
    for path in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            names[str(path.readlink()).split(":")[0]] += 1
    return dict(names)


def own_threads() -> int:
    return threading.active_count() - PER_WORKER_THREADS * len(workers())


def settled(count: Any, wanted: int) -> int:
    """Return `count()`, once it is no more than `wanted` or does not fall any more."""
    limit = time.monotonic() + SETTLE_SECONDS
    while (seen := count()) > wanted and time.monotonic() < limit:
        gc.collect()
        time.sleep(0.02)
    return seen


def settled_list(find: Callable[[], list[str]]) -> list[str]:
    """Return what `find` finds, once it finds nothing or has been given time to."""
    limit = time.monotonic() + SETTLE_SECONDS
    while (found := find()) and time.monotonic() < limit:
        time.sleep(0.02)
    return found


def temporary_files(directory: Path) -> list[str]:
    """Return what lies in a directory of temporary files but for what live workers have there."""
    wanted = {str(w._process._scratch) for w in workers()}
    found = [p for p in directory.iterdir() if str(p) not in wanted]
    # Where the user's cache cannot be written, this is the cache.
    return sorted(p.name for p in found if not p.name.startswith("llmkernel-cpu-"))


def files_in(directory: Path) -> list[str]:
    return sorted(str(p.relative_to(directory)) for p in directory.rglob("*"))


def broken_records(directory: Path) -> list[str]:
    """Return what is wrong with the records of a directory: each that is there must load, whole."""
    store = RecordStore(directory)
    found = [str(e) for e in store.unreadable()]
    for stored in store.list():
        if stored.is_edited:
            found.append(f"{stored.folder}: source and record are of different versions")
        lines = store.transcript(stored).splitlines()
        found += [
            f"{stored.folder}: half a line in the transcript" for line in lines if not line.endswith("}")
        ]
    return found


def interrupted(action: Callable[[], str], delays: Sequence[float]) -> str:
    """Return `action()`, or ``KeyboardInterrupt``; SIGINT comes after each of some delays in seconds.

    Signals that came late are taken here, so that none reaches whoever called.
    """
    over = threading.Event()
    sent = threading.Event()

    def send() -> None:
        start = time.monotonic()
        for delay in sorted(delays):
            if over.wait(max(0.0, delay - (time.monotonic() - start))):
                break
            os.kill(os.getpid(), signal.SIGINT)
        sent.set()

    outcome = "KeyboardInterrupt"
    try:
        threading.Thread(target=send, daemon=True, name="soak-signals").start()
        outcome = action()
    except KeyboardInterrupt:
        pass
    while True:
        try:
            over.set()
            sent.wait()
            time.sleep(0.01)
            return outcome
        except KeyboardInterrupt:
            outcome = "KeyboardInterrupt"
