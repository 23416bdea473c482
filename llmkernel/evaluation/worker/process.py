"""A worker's process and the threads that own it.

Ctrl-C raises in the main thread wherever that is: between the start of a process and the assignment of its handle, or in
the middle of a frame. Other threads are never interrupted, so they start the process, write to it, read from it and reap
it; whoever asks only puts into a queue and takes out of one. Linux, besides, takes the end of the thread that started a
process for the end of its parent: the owner stays for as long as the process does.
"""

from __future__ import annotations

import contextlib
import os
import queue
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from llmkernel.devices.base import Bytes
from llmkernel.evaluation.worker.protocol import encode_head, read_frame, write_parts

Answer = tuple[dict[str, Any], list[Bytes]]
_LAST_WORDS_BYTES = 4096
# A worker whose standard output is closed is about to end by itself, and then its exit code says why.
_LEAVE_SECONDS = 5.0
_END_SECONDS = 10.0
# A process that is being killed may have started another one meanwhile.
_PASSES = 20


class WorkerProcess:
    """One process that answers frames with frames.

    Parameters
    ----------
    command : sequence of str
    environment : dict
    scratch : pathlib.Path, optional
        Where it works; removed when it has ended.

    Attributes
    ----------
    answers : queue.SimpleQueue
        Frames, and at last the exception that ended the reading; the process is then gone, with all that it started.
    exit_code : int or None
        As of `subprocess.Popen`, once it has ended; None where it could not be started.
    """

    def __init__(
        self, command: Sequence[str], environment: dict[str, str], scratch: Path | None = None
    ) -> None:
        self.answers: queue.SimpleQueue[Answer | Exception] = queue.SimpleQueue()
        self.exit_code: int | None = None
        self._command, self._environment, self._scratch = list(command), environment, scratch
        self._requests: queue.SimpleQueue[tuple[bytes, Sequence[Bytes]] | None] = queue.SimpleQueue()
        self._lock = threading.RLock()  # garbage may be collected while it is held
        self._process: subprocess.Popen[bytes] | None = None
        self._creator = os.getpid()
        self._is_unwanted = False
        self._is_reaped = False
        self._has_started, self._has_ended = threading.Event(), threading.Event()
        self._said = b""
        self._owner: threading.Thread | None = None

    def start(self) -> None:
        """Start it; returns at once.

        Not done when it is made: whoever is interrupted meanwhile must hold it already, in order to end it.
        """
        self._owner = threading.Thread(target=self._own, daemon=True, name="llmkernel-worker-owner")
        self._owner.start()

    @property
    def pid(self) -> int:
        """Process id; 0 where it could not be started."""
        if self._has_owner():
            self._has_started.wait()
        return self._process.pid if self._process is not None else 0

    @property
    def is_running(self) -> bool:
        """Whether it is starting or can still answer."""
        return self._has_owner() and not (self._is_unwanted or self._has_ended.is_set() or self._is_over())

    @property
    def has_ended(self) -> bool:
        """Whether it is gone, or was never there: no more answers come."""
        return self._has_ended.is_set() or not self._has_owner()

    @property
    def is_stopped(self) -> bool:
        """Whether someone stopped it, as SIGSTOP does; False where the system does not say."""
        if self._process is None:
            return False
        try:
            state = Path(f"/proc/{self._process.pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except (OSError, IndexError):
            return False
        return state == "T"

    def ask(self, header: dict[str, Any], blobs: Sequence[Bytes]) -> None:
        """Send a frame; returns at once. Where it cannot be sent, the process ends, and `answers` says so."""
        self._requests.put((encode_head(header, blobs), blobs))

    def last_words(self) -> str:
        """Return the last line of what it wrote to standard error, at most 300 characters."""
        lines = self._said.decode(errors="replace").strip().splitlines()
        return lines[-1][:300] if lines else ""

    def end(self) -> None:
        """End the process and everything that it started; may be called again after an interrupt."""
        self.abandon()
        if os.getpid() == self._creator and self._has_owner():
            self._has_ended.wait(_END_SECONDS)

    def abandon(self) -> None:
        """Have the process end, without waiting for it: garbage may be collected in any thread, also in the owner."""
        if os.getpid() != self._creator:
            return  # a fork of the notebook's process: the worker is not its own
        self._is_unwanted = True
        self._kill()
        self._requests.put(None)

    # ---- the owner's side -----------------------------------------------------------------------------------

    def _own(self) -> None:
        reason: Exception
        try:
            if self._scratch is not None:
                self._scratch.mkdir(mode=0o700)
            process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=self._environment,
                cwd=self._scratch,
                start_new_session=True,
                bufsize=1 << 16,
            )
        except Exception as error:  # noqa: BLE001 - no descriptor, no memory, no interpreter: whoever asks must hear of it
            self._has_started.set()
            self._clean_up()
            self._has_ended.set()
            self.answers.put(error)
            return
        with self._lock:
            self._process = process
        self._has_started.set()
        try:
            if self._is_unwanted:
                self._kill()
            for target in (self._write, self._listen):
                threading.Thread(target=target, args=(process,), daemon=True, name="llmkernel-worker").start()
            assert process.stdout is not None
            while True:
                self.answers.put(read_frame(process.stdout))  # type: ignore[arg-type]
        except Exception as error:  # noqa: BLE001 - whatever it was, nothing more can be read
            reason = error
        self._finish(process, is_silent=isinstance(reason, EOFError))
        self.answers.put(reason)

    def _finish(self, process: subprocess.Popen[bytes], *, is_silent: bool) -> None:
        limit = time.monotonic() + (_LEAVE_SECONDS if is_silent else 0.0)
        while not self._is_over() and not self._is_unwanted and time.monotonic() < limit:
            time.sleep(0.005)
        self._kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            if hasattr(os, "waitid"):
                with contextlib.suppress(ChildProcessError):
                    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
            # Not reaped yet: its number, which is also its session's, is nobody else's.
            _end_session(process.pid)
            with self._lock:
                self._is_reaped = True
                self.exit_code = process.wait(timeout=_END_SECONDS)
        self._requests.put(None)
        if process.stdout is not None:
            with contextlib.suppress(OSError):
                process.stdout.close()
        self._clean_up()
        self._has_ended.set()

    def _clean_up(self) -> None:
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)

    def _write(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        with contextlib.suppress(OSError, ValueError):
            while (frame := self._requests.get()) is not None:
                write_parts(process.stdin, *frame)  # type: ignore[arg-type]
                del frame
        with contextlib.suppress(OSError, ValueError):
            process.stdin.close()

    def _listen(self, process: subprocess.Popen[bytes]) -> None:
        """Keep the end of what it says: a kernel that prints for hours fills neither memory nor a disk."""
        assert process.stderr is not None
        with contextlib.suppress(OSError, ValueError), process.stderr as stream:
            while chunk := os.read(stream.fileno(), 1 << 16):
                self._said = (self._said + chunk)[-_LAST_WORDS_BYTES:]

    def _has_owner(self) -> bool:
        # Interrupted in `start`, the thread may run or not.
        return self._owner is not None and self._owner.ident is not None

    def _is_over(self) -> bool:
        """Whether the process has ended, without reaping it."""
        process = self._process
        if process is None:
            return False
        if self._is_reaped:
            return True
        if not hasattr(os, "waitid"):
            return process.poll() is not None
        try:
            return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None
        except ChildProcessError:
            return True

    def _kill(self) -> None:
        with self._lock:
            if self._process is None or self._is_reaped:
                return
            with contextlib.suppress(OSError):
                if hasattr(os, "killpg"):
                    os.killpg(self._process.pid, signal.SIGKILL)
                else:
                    self._process.kill()


def _end_session(session: int) -> None:
    """End what a worker started in groups of their own, compilers and runners, also where it was killed itself."""
    if not sys.platform.startswith("linux"):
        return
    for _ in range(_PASSES):
        found = False
        for entry in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError, IndexError, ValueError):
                state, _, _, member_of = entry.read_text().rsplit(")", 1)[1].split()[:4]
                if int(member_of) == session and state != "Z":
                    os.kill(int(entry.parent.name), signal.SIGKILL)
                    found = True
        if not found:
            return
