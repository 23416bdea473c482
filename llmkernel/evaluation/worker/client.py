"""The notebook's side of a worker: a process that can be lost without losing anything."""

from __future__ import annotations

import atexit
import contextlib
import os
import queue
import secrets
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from llmkernel.devices.base import Bytes, DeviceLimits, Fault
from llmkernel.devices.kills import fault_of_kill, is_kill, memory_kills
from llmkernel.errors import DeviceUnavailableError, LLMKernelError, WorkerError
from llmkernel.evaluation.worker.errors import error_from_dict
from llmkernel.evaluation.worker.process import WorkerProcess
from llmkernel.evaluation.worker.protocol import FrameError
from llmkernel.sandbox.enter import PARTS
from llmkernel.sandbox.environment import needed_only, with_package, without_secrets

START_SECONDS = 120.0
# Someone may kill a worker while it starts; someone who always does has a reason.
_STARTS = 3
_SHORTAGES = ("MemoryError", "Cannot allocate memory", "Too many open files", "No space left on device")
# Which parts of the sandbox each device's workers are started without. The first that is ready settles it: no candidate
# has run by then, so none can have a later worker started with less.
_SETTLED: dict[str, tuple[str, ...]] = {}


class WorkerLostError(Exception):
    """The worker ended, or was ended; `fault` says why."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault

    @property
    def is_interference(self) -> bool:
        """Whether someone else ended it: nothing is known of what it was asked to do, which can be asked again."""
        return self.fault.kind == "killed"


class Worker:
    """One worker process.

    Where the device cannot be made ready inside the whole sandbox, the process is started again with one part of it
    less, and `sandbox` says so.

    Parameters
    ----------
    device : str
        ``cuda`` or ``cpu``.
    is_baseline : bool
        It runs the user's own code and no candidate, and is not confined (docs/adr/0008).
    """

    def __init__(self, device: str, *, is_baseline: bool = False) -> None:
        self.device = device
        self._is_baseline = is_baseline
        self._without = _SETTLED.get(device, ())
        self._reason = ""
        # Several threads may ask, one after the other.
        self._turn = threading.RLock()
        self._hello: dict[str, Any] | None = None
        self._is_ready = False
        self._process = self._make_process()

    def start(self) -> Self:
        """Start the process; returns at once.

        Not done when the worker is made: an interrupt would leave a process that nobody knows of for as long as the
        notebook keeps the traceback.
        """
        self._process.start()
        return self

    def _make_process(self) -> WorkerProcess:
        command = [sys.executable, "-P", "-m", "llmkernel.evaluation.worker", self.device]
        scratch = None if self._is_baseline else _scratch_path()
        if scratch is not None:
            command += ["--scratch", str(scratch)]
            command += [word for part in self._without for word in ("--without", part)]
        return WorkerProcess(command, worker_environment(self.device, scratch), scratch)

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether the process still runs and may be asked."""
        return self._process.is_running

    def hello(self) -> dict[str, Any]:
        """Wait until the worker is ready; return its limits and versions.

        Raises
        ------
        llmkernel.errors.DeviceError
            When the device cannot be used here.
        WorkerLostError
            When someone else ended it meanwhile.
        """
        with self._turn:
            while self._hello is None:
                try:
                    self._hello, _ = self._exchange(None, (), START_SECONDS)
                except (WorkerLostError, LLMKernelError) as error:
                    self._start_with_less(error)
            return self._hello

    def wait_until_ready(self) -> None:
        """Wait until the device is ready for a candidate; raises as `hello` does."""
        with self._turn:
            while not self._is_ready:
                self.hello()
                try:
                    answer, _ = self._exchange(None, (), START_SECONDS)
                except (WorkerLostError, LLMKernelError) as error:
                    self._start_with_less(error)
                    continue
                self._is_ready = bool(answer.get("ready"))
                if not self._is_baseline:
                    _SETTLED.setdefault(self.device, self._without)

    def sandbox(self) -> dict[str, Any]:
        """Return what holds the worker: its ``parts`` and, one sentence each, what is ``missing``."""
        found: dict[str, Any] = {"parts": [], "missing": []} | self.hello().get("sandbox", {})
        if self._reason:
            found["missing"] = [
                *found["missing"],
                f"Inside the whole sandbox the worker ended: {self._reason}",
            ]
        return found

    def _start_with_less(self, error: Exception) -> None:
        """Start the process again with one part of the sandbox less; raise `error` where that is no remedy."""
        self.close()
        left = [part for part in PARTS if part not in self._without]
        is_interference = isinstance(error, WorkerLostError) and error.is_interference
        # Neither what was never started nor what ran out of memory or descriptors failed for the sandbox.
        is_shortage = not self._process.pid or any(w in str(error) for w in _SHORTAGES)
        if is_interference or is_shortage or self._is_baseline or not left or self.device in _SETTLED:
            raise error
        self._reason = self._reason or str(error).strip().splitlines()[0][:200]
        self._without = (*self._without, left[0])
        self._hello, self._is_ready = None, False
        self._process = self._make_process()
        self.start()

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
        with self._turn:
            self.wait_until_ready()
            return self._exchange({**header, "seconds": timeout}, blobs, timeout)

    def close(self) -> None:
        """End the process and everything it started."""
        self._process.end()

    def __del__(self) -> None:
        # An interrupt may come before anyone holds the worker that was just made.
        process = self.__dict__.get("_process")
        if process is not None:
            process.abandon()

    def _exchange(
        self, header: dict[str, Any] | None, blobs: Sequence[Bytes], timeout: float
    ) -> tuple[dict[str, Any], list[Bytes]]:
        try:
            kills = memory_kills()
            if header is not None:
                self._process.ask(header, blobs)
            answer = self._answer(timeout)
        except BaseException:
            # Also an interrupt: its answer must not be taken for that of the next request.
            self.close()
            raise
        if isinstance(answer, Exception):
            raise self._lost(answer, kills)
        header, back = answer
        if "error" in header:
            error = error_from_dict(header["error"])
            if isinstance(error, WorkerError):
                self.close()
                raise WorkerLostError(Fault("worker_died", error.what))
            raise error
        return header, back

    def _answer(self, timeout: float) -> tuple[dict[str, Any], list[Bytes]] | Exception:
        limit = time.monotonic() + timeout
        was_stopped = False
        while True:
            with contextlib.suppress(queue.Empty):
                # Short waits: on Windows a lock that is waited for cannot be interrupted.
                return self._process.answers.get(timeout=max(0.0, min(0.25, limit - time.monotonic())))
            if self._process.has_ended:
                with contextlib.suppress(queue.Empty):
                    return self._process.answers.get_nowait()
                return EOFError("it had ended before")
            is_stopped = self._process.is_stopped
            if is_stopped and was_stopped:
                raise WorkerLostError(Fault("killed", "The worker was stopped from outside and was ended."))
            was_stopped = is_stopped
            if time.monotonic() >= limit:
                raise WorkerLostError(
                    Fault("timeout", f"The worker gave no answer within {timeout:g} s and was ended.")
                )

    def _lost(self, reason: Exception, kills: int | None) -> Exception:
        self.close()
        code = self._process.exit_code
        last = self._process.last_words()
        if isinstance(reason, FrameError):
            # No candidate can write there: it has no host code, or it runs in another process.
            text = f"The worker sent what is no answer ({reason}) and was ended."
            return WorkerLostError(Fault("killed", text, details={"stderr": last} if last else {}))
        if code is not None and is_kill(code):
            return WorkerLostError(fault_of_kill("The worker", code, kills))
        how = _ending(code) if code is not None else f"{type(reason).__name__}: {reason}"
        if self._hello is None:
            return WorkerError(
                f"The evaluation worker for {self.device!r} did not start.",
                received=how + (f": {last}" if last else ""),
                next_step="Run `llmkernel doctor` to see what is missing.",
            )
        return WorkerLostError(
            Fault("worker_died", f"The worker ended ({how}).", details={"stderr": last} if last else {})
        )


def _scratch_path() -> Path:
    """Return the name of a directory that does not exist yet; who owns the process makes and removes it."""
    try:
        return Path(tempfile.gettempdir()) / f"llmkernel-worker-{secrets.token_hex(8)}"
    except OSError as error:
        raise DeviceUnavailableError(
            "No directory for temporary files can be written.",
            rule="an evaluation worker has a directory of its own there",
            received=error.strerror or str(error),
            next_step="Free some space, or name another directory in TMPDIR.",
        ) from error


def _ending(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    with contextlib.suppress(ValueError):
        return f"signal {signal.Signals(-code).name}"
    return f"signal {-code}"


def worker_environment(device: str, scratch: Path | None) -> dict[str, str]:
    """Return the environment of a worker.

    Parameters
    ----------
    device : str
    scratch : pathlib.Path or None
        The worker's own directory; None for a baseline, which gets all but what is named like a secret.
    """
    if scratch is None:
        return with_package(without_secrets())
    made = with_package(needed_only())
    own = {"TMPDIR": scratch, "CUPY_CACHE_DIR": scratch / "cupy", "CUDA_CACHE_PATH": scratch / "nv"}
    if device != "cpu":
        # What it compiles stays its own: others would believe by its name what a worker left in a common cache.
        own["LLMKERNEL_CACHE_DIR"] = scratch / "cache"
    elif "LLMKERNEL_CACHE_DIR" in made:
        own["LLMKERNEL_CACHE_DIR"] = Path(made["LLMKERNEL_CACHE_DIR"]).absolute()
    return made | {name: str(path) for name, path in own.items()}


class WorkerPool:
    """Hands out ready workers and keeps a spare warm.

    A spare is started when a worker is taken, so that a candidate that crashes costs no start-up time.

    Parameters
    ----------
    is_baseline : bool
        See `Worker`.
    """

    def __init__(self, *, is_baseline: bool = False) -> None:
        self._is_baseline = is_baseline
        self._current: dict[str, Worker] = {}
        self._spare: dict[str, Worker] = {}
        self._lent: list[Worker] = []
        self._lock = threading.Lock()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.forget)
        atexit.register(self.close)

    def get(self, device: str) -> Worker:
        """Return the worker of a device, a new one if the last was lost.

        Raises
        ------
        llmkernel.errors.DeviceError
            When none can be started here.
        """
        for _ in range(_STARTS):
            worker = self._take(device)
            try:
                worker.hello()
            except WorkerLostError as lost:
                self.discard(worker)
                fault = lost.fault
            except LLMKernelError:
                self.discard(worker)
                raise
            else:
                return worker
        raise WorkerError(
            f"The evaluation worker for {device!r} did not start.",
            received=fault.message,
            next_step="Run `llmkernel doctor` to see what is missing.",
        )

    def _take(self, device: str) -> Worker:
        with self._lock:
            worker = self._current.get(device)
            if worker is not None and worker.is_alive:
                return worker
            if worker is not None:
                worker.close()  # an interrupt may have kept it from being closed
            worker = self._spare.get(device)
            if worker is not None and worker.is_alive:
                # In this order: at every moment an interrupt leaves it in one of the two.
                self._current[device] = worker
                del self._spare[device]
                return worker
            self._current[device] = worker = Worker(device, is_baseline=self._is_baseline)
            return worker.start()

    def warm(self, device: str) -> None:
        """Start a spare, if there is none; returns at once."""
        with self._lock:
            spare = self._spare.get(device)
            if spare is None or not spare.is_alive:
                self._spare[device] = spare = Worker(device, is_baseline=self._is_baseline)
                spare.start()

    def lend(self, device: str) -> Worker:
        """Return a worker besides the one that `get` returns: the spare, or a new one. `take_back` or `discard` ends it."""
        with self._lock:
            worker = self._spare.get(device)
            if worker is None or not worker.is_alive:
                worker = Worker(device, is_baseline=self._is_baseline)
                self._lent.append(worker)
                worker.start()
            else:
                # In this order: at every moment an interrupt leaves it in one of the two.
                self._lent.append(worker)
                del self._spare[device]
            return worker

    def take_back(self, worker: Worker) -> None:
        """Make a lent worker the spare; it is ended where there is another, or where it has ended anyway."""
        with self._lock:
            if self._current.get(worker.device) is worker or self._spare.get(worker.device) is worker:
                return
            spare = self._spare.get(worker.device)
            if worker.is_alive and (spare is None or not spare.is_alive):
                self._spare[worker.device] = worker
            else:
                worker.close()
            self._lent = [w for w in self._lent if w is not worker]

    def take_back_all(self, device: str) -> None:
        """Take back what is still lent."""
        for worker in [w for w in self._lent if w.device == device]:
            self.take_back(worker)

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
            self._lent = [w for w in self._lent if w is not worker]

    def discard_current(self, device: str) -> None:
        """Close the worker that `get` returned last, if there is one."""
        with self._lock:
            worker = self._current.get(device)
        if worker is not None:
            self.discard(worker)

    def forget(self) -> None:
        """Let go of all workers without ending them: a fork of the notebook's process must not share them."""
        self._lock = threading.Lock()
        self._current, self._spare, self._lent = {}, {}, []

    def close(self) -> None:
        """End all workers."""
        with self._lock:
            for workers in (self._current, self._spare):
                for worker in workers.values():
                    worker.close()
                workers.clear()
            for worker in self._lent:
                worker.close()
            self._lent.clear()


POOL = WorkerPool()
