"""One runner process: started, watched, read from, and gone when the call returns, whatever happens."""

from __future__ import annotations

import os
import selectors
import signal
import struct
import subprocess
import threading
import time
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import Any

from llmkernel.devices.kills import memory_kills

MAX_PRINTED = 64 * 1024
_MAX_REPORTS = 1 << 16
# The runner's own alarm comes first; this much later it is ended from outside.
_GRACE_SECONDS = 2.0
_END_SECONDS = 10.0
_LAYOUT = struct.Struct("<IIIiiI3I3I6I5I3I3I4xQQQQd128s")


class ReportType(IntEnum):
    """The runner's reports, by number (runtime/report.h)."""

    LOADED = 1
    DONE = 2
    LAUNCH_FAILED = 3
    OUT_OF_MEMORY = 4
    SIGNAL = 5
    TRAP = 6
    DEADLOCK = 7
    DIVERGENT_BARRIER = 8
    DIVERGENT_COLLECTIVE = 9
    LANE_OUTSIDE_MASK = 10
    SHARED_OVERRUN = 11
    MISALIGNED = 12
    OUT_OF_BOUNDS = 13
    UNINITIALISED_READ = 14
    DATA_RACE = 15
    BARRIER_WITHOUT_LANES = 16
    MISALIGNED_ELEMENT = 17


@dataclass(frozen=True)
class Report:
    """One report; which fields mean something depends on the type."""

    type: int
    execution: int
    launch: int
    signal: int
    code: int
    has_thread: bool
    block: tuple[int, int, int]
    thread: tuple[int, int, int]
    line: int
    other_line: int
    at_barrier: int
    at_collective: int
    finished: int
    heap_exhausted: bool
    kind: int
    other_kind: int
    bytes: int
    element_bytes: int
    space: int
    other_block: tuple[int, int, int]
    other_thread: tuple[int, int, int]
    size: int
    address: int
    pc: int
    blocks_done: int
    elapsed_ms: float
    text: str


@dataclass
class RunnerResult:
    """What a runner process left behind.

    Attributes
    ----------
    reports : list of Report
    printed : str
    exit_code : int
        Negative: ended by that signal.
    was_killed : bool
        It outlived its time and was ended from here.
    kills_before : int or None
        `llmkernel.devices.kills.memory_kills` before it was started.
    """

    reports: list[Report] = field(default_factory=list)
    printed: str = ""
    exit_code: int = 0
    was_killed: bool = False
    kills_before: int | None = None


def run_runner(runner: Path, job: bytes, buffers: int, timeout_seconds: float) -> RunnerResult:
    """Start the runner on a job and wait for its end.

    Parameters
    ----------
    runner : pathlib.Path
    job : bytes
        From `encode_job`.
    buffers : int
        File descriptor of the shared buffers.
    timeout_seconds : float
        Wall clock for the whole process.
    """
    if threading.current_thread() is not threading.main_thread():
        return _run(runner, job, buffers, timeout_seconds, None)
    # Ctrl-C raises in the main thread wherever that is, also between the start of a process and the assignment of
    # its handle. Another thread is never interrupted, so it owns the process, and is told when to end it.
    found: list[RunnerResult] = []
    errors: list[BaseException] = []
    cancelled, cancel = os.pipe()
    # An event of our own: Thread.join forgets the thread when it is interrupted.
    ended = threading.Event()

    def own() -> None:
        try:
            found.append(_run(runner, job, buffers, timeout_seconds, cancelled))
        except BaseException as error:  # noqa: BLE001 - raised again where the caller waits
            errors.append(error)
        finally:
            os.close(cancelled)
            ended.set()

    try:
        threading.Thread(target=own, name="llmkernel-runner", daemon=True).start()
        ended.wait()
    finally:
        os.close(cancel)
        # Bounded, for the case that the thread could not even be started.
        ended.wait(_END_SECONDS)
    if errors:
        raise errors[0]
    return found[0]


def _run(
    runner: Path, job: bytes, buffers: int, timeout_seconds: float, cancelled: int | None
) -> RunnerResult:
    job_file = os.memfd_create("llmkernel-job", os.MFD_CLOEXEC)
    report_end, report_input = os.pipe()
    process: subprocess.Popen[bytes] | None = None
    try:
        os.write(job_file, job)
        kills = memory_kills()
        process = subprocess.Popen(
            [str(runner), str(job_file), str(buffers), str(report_input)],
            pass_fds=(job_file, buffers, report_input),
            env={},
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            process_group=0,  # of the worker's session, so that whoever ends the worker finds it
        )
        os.close(report_input)
        report_input = -1
        deadline = time.monotonic() + timeout_seconds + _GRACE_SECONDS
        result = _watch(process, report_end, deadline, cancelled)
        result.kills_before = kills
        return result
    finally:
        if process is not None:
            _end(process)
        for file in (job_file, report_end, report_input):
            if file >= 0:
                os.close(file)


def _watch(
    process: subprocess.Popen[bytes], reports: int, deadline: float, cancelled: int | None
) -> RunnerResult:
    assert process.stdout is not None
    printed = process.stdout.fileno()
    received = {reports: bytearray(), printed: bytearray()}
    kept = {reports: _MAX_REPORTS * _LAYOUT.size, printed: MAX_PRINTED}
    was_killed = False
    with selectors.DefaultSelector() as selector:
        for file in received:
            selector.register(file, selectors.EVENT_READ)
        if cancelled is not None:
            selector.register(cancelled, selectors.EVENT_READ)
        is_open = set(received)
        while is_open and not was_killed:
            for key, _ in selector.select(max(deadline - time.monotonic(), 0)):
                if key.fd == cancelled:
                    was_killed = True
                    break
                chunk = os.read(key.fd, 65536)
                if not chunk:
                    selector.unregister(key.fd)
                    is_open.discard(key.fd)
                data = received[key.fd]
                data += chunk[: kept[key.fd] - len(data)]
            was_killed |= time.monotonic() >= deadline
    if was_killed:
        process.kill()
    exit_code = process.wait()
    whole = len(received[reports]) // _LAYOUT.size * _LAYOUT.size
    return RunnerResult(
        reports=[_report(values) for values in _LAYOUT.iter_unpack(bytes(received[reports][:whole]))],
        printed=received[printed].decode(errors="replace"),
        exit_code=exit_code,
        was_killed=was_killed,
    )


def _report(values: tuple[Any, ...]) -> Report:
    kind, execution, launch, number, code, has_thread = values[:6]
    line, other_line, at_barrier, at_collective, finished, heap_exhausted = values[12:18]
    access, other_access, width, element_bytes, space = values[18:23]
    size, address, pc, blocks_done, elapsed_ms, text = values[29:]
    return Report(
        type=kind,
        execution=execution,
        launch=launch,
        signal=number,
        code=code,
        has_thread=bool(has_thread),
        block=values[6:9],
        thread=values[9:12],
        line=line,
        other_line=other_line,
        at_barrier=at_barrier,
        at_collective=at_collective,
        finished=finished,
        heap_exhausted=bool(heap_exhausted),
        kind=access,
        other_kind=other_access,
        bytes=width,
        element_bytes=element_bytes,
        space=space,
        other_block=values[23:26],
        other_thread=values[26:29],
        size=size,
        address=address,
        pc=pc,
        blocks_done=blocks_done,
        elapsed_ms=elapsed_ms,
        text=text.split(b"\0", 1)[0].decode(errors="replace"),
    )


def _end(process: subprocess.Popen[bytes]) -> None:
    # Also on KeyboardInterrupt: nothing of a run outlives the call.
    if process.poll() is None:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    process.wait()
    if process.stdout is not None:
        process.stdout.close()
