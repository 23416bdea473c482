"""The notebook's side of a worker: a process that can be lost without losing anything."""

from __future__ import annotations

import atexit
import contextlib
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from typing import Any

from llmkernel.devices.base import Bytes, DeviceLimits, Fault
from llmkernel.errors import LLMKernelError, WorkerError
from llmkernel.evaluation.worker.errors import error_from_dict
from llmkernel.evaluation.worker.protocol import FrameError, read_frame, write_frame

START_SECONDS = 120.0
_SECRET_WORDS = ("KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL")


class WorkerLostError(Exception):
    """The worker ended, or was ended; `fault` says why."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


class Worker:
    """One worker process.

    Parameters
    ----------
    device : str
        ``cuda`` or ``cpu``.
    """

    def __init__(self, device: str) -> None:
        self.device = device
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the worker
        self._process = subprocess.Popen(
            [sys.executable, "-m", "llmkernel.evaluation.worker", device],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=worker_environment(),
            start_new_session=True,
            bufsize=1 << 16,
        )
        self._answers: queue.Queue[tuple[dict[str, Any], list[Bytes]] | Exception] = queue.Queue()
        self._hello: dict[str, Any] | None = None
        self._is_closed = False
        threading.Thread(target=self._read, daemon=True, name="llmkernel-worker-reader").start()

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether the process still runs and may be asked."""
        return not self._is_closed and self._process.poll() is None

    def hello(self) -> dict[str, Any]:
        """Wait until the worker is ready; return its limits and versions.

        Raises
        ------
        llmkernel.errors.DeviceError
            When the device cannot be used here.
        """
        if self._hello is None:
            answer, _ = self._wait(START_SECONDS)
            self._hello = answer
        return self._hello

    def limits(self) -> DeviceLimits:
        """Return the device's limits."""
        data = dict(self.hello()["limits"])
        return DeviceLimits(
            **{**data, "max_block": tuple(data["max_block"]), "max_grid": tuple(data["max_grid"])}
        )

    def request(
        self, header: dict[str, Any], blobs: Sequence[Bytes] = (), *, timeout: float
    ) -> tuple[dict[str, Any], list[Bytes]]:
        """Send one request and wait for its answer.

        Parameters
        ----------
        timeout : float
            Seconds; the worker is ended when they are over.

        Raises
        ------
        WorkerLostError
            It died, hung, or sent nonsense. The worker is closed.
        llmkernel.errors.LLMKernelError
            What the worker reported.
        KeyboardInterrupt
            The worker is closed first.
        """
        self.hello()
        try:
            stdin = self._process.stdin
            assert stdin is not None
            write_frame(stdin, header, blobs)  # type: ignore[arg-type]
        except (OSError, ValueError):
            raise self._lost() from None
        except BaseException:
            self.close()
            raise
        return self._wait(timeout)

    def close(self) -> None:
        """End the process and everything it started."""
        if self._is_closed:
            return
        self._is_closed = True
        with contextlib.suppress(OSError, ValueError):
            if self._process.stdin is not None:
                self._process.stdin.close()
        _end_group(self._process)
        with contextlib.suppress(OSError):
            self._errors.close()

    def _read(self) -> None:
        stream = self._process.stdout
        assert stream is not None
        try:
            while True:
                self._answers.put(read_frame(stream))  # type: ignore[arg-type]
        except (EOFError, FrameError, OSError, ValueError) as error:
            self._answers.put(error)
        finally:
            with contextlib.suppress(OSError):
                stream.close()

    def _wait(self, timeout: float) -> tuple[dict[str, Any], list[Bytes]]:
        limit = time.monotonic() + timeout
        try:
            while True:
                try:
                    # Short waits: on Windows a lock that is waited for cannot be interrupted.
                    answer = self._answers.get(timeout=max(0.0, min(0.25, limit - time.monotonic())))
                    break
                except queue.Empty:
                    if time.monotonic() >= limit:
                        self.close()
                        message = f"The worker gave no answer within {timeout:g} s and was ended."
                        raise WorkerLostError(Fault("timeout", message)) from None
        except BaseException:
            self.close()
            raise
        if isinstance(answer, Exception):
            raise self._lost()
        header, blobs = answer
        if "error" in header:
            error = error_from_dict(header["error"])
            if isinstance(error, WorkerError):
                self.close()
                raise WorkerLostError(Fault("worker_died", error.what))
            raise error
        return header, blobs

    def _lost(self) -> Exception:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=5)
        code = self._process.returncode
        last = self._last_words()
        self.close()
        if self._hello is None:
            return WorkerError(
                f"The evaluation worker for {self.device!r} did not start.",
                received=(f"exit code {code}" + (f": {last}" if last else "")),
                next_step="Run `llmkernel doctor` to see what is missing.",
            )
        how = f"signal {signal.Signals(-code).name}" if code is not None and code < 0 else f"exit code {code}"
        if code in (-signal.SIGKILL, 137) if hasattr(signal, "SIGKILL") else False:
            return WorkerLostError(
                Fault("out_of_memory", f"The worker was killed ({how}), probably for its memory.")
            )
        return WorkerLostError(
            Fault("worker_died", f"The worker ended ({how}).", details={"stderr": last} if last else {})
        )

    def _last_words(self) -> str:
        with contextlib.suppress(OSError, ValueError):
            size = self._errors.seek(0, os.SEEK_END)
            self._errors.seek(max(0, size - 4096))
            lines = self._errors.read().decode(errors="replace").strip().splitlines()
            return lines[-1][:300] if lines else ""
        return ""


def worker_environment() -> dict[str, str]:
    """Return the environment of a worker: the notebook's, without anything that looks like a secret."""
    kept = {k: v for k, v in os.environ.items() if not any(w in k.upper() for w in _SECRET_WORDS)}
    # The package may be imported from a source tree that only the notebook's process knows of.
    paths = [p for p in sys.path if p]
    kept["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(paths))
    kept["PYTHONUNBUFFERED"] = "1"
    return kept


def _end_group(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        with contextlib.suppress(OSError):
            if hasattr(os, "killpg"):
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=5)


class WorkerPool:
    """Hands out ready workers and keeps a spare warm.

    A spare is started when a worker is taken, so that a candidate that crashes costs no start-up time.
    """

    def __init__(self) -> None:
        self._current: dict[str, Worker] = {}
        self._spare: dict[str, Worker] = {}
        self._lock = threading.Lock()

    def get(self, device: str) -> Worker:
        """Return the worker of a device, a new one if the last was lost."""
        with self._lock:
            worker = self._current.get(device)
            if worker is not None and worker.is_alive:
                return worker
            worker = self._spare.pop(device, None)
            if worker is None or not worker.is_alive:
                worker = Worker(device)
            self._current[device] = worker
        try:
            worker.hello()
        except LLMKernelError:
            self.discard(worker)
            raise
        return worker

    def warm(self, device: str) -> None:
        """Start a spare, if there is none; returns at once."""
        with self._lock:
            spare = self._spare.get(device)
            if spare is None or not spare.is_alive:
                self._spare[device] = Worker(device)

    def wait_for_spare(self, device: str) -> None:
        """Wait until the spare of a device is ready, if there is one."""
        with self._lock:
            spare = self._spare.get(device)
        if spare is not None:
            spare.hello()

    def discard(self, worker: Worker) -> None:
        """Close a worker and forget it."""
        worker.close()
        with self._lock:
            for workers in (self._current, self._spare):
                if workers.get(worker.device) is worker:
                    del workers[worker.device]

    def close(self) -> None:
        """End all workers."""
        with self._lock:
            for workers in (self._current, self._spare):
                for worker in workers.values():
                    worker.close()
                workers.clear()


POOL = WorkerPool()
atexit.register(POOL.close)
