"""The steps of a soak: each does one thing to a notebook, and says what may come of it."""

from __future__ import annotations

import contextlib
import os
import random
import resource
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from llmkernel.errors import DeviceUnavailableError, LLMKernelError, NotAcceptedError
from llmkernel.evaluation.evaluate import evaluate
from llmkernel.evaluation.report import OUTCOMES
from llmkernel.evaluation.timing import BASELINES
from llmkernel.evaluation.worker.client import POOL
from llmkernel.synthesis.source import accept_source
from tests.soak import candidates
from tests.soak.candidates import HONEST, HUGE_SCRATCH, PRINTS, WITH_FAULT, axpy, unique
from tests.soak.watch import interrupted, workers

HANG_SECONDS = 0.4
PASSED = frozenset({"passed"})
STOPPED = frozenset({"passed", "KeyboardInterrupt"})


@dataclass
class Notebook:
    """What a person has in a notebook: arrays, kernels, and a directory of records."""

    device: str
    rng: random.Random
    home: Path
    values: dict[str, Any]
    records: Path
    names: int = 0

    @classmethod
    def open(cls, device: str, seed: int, home: Path) -> Notebook:
        numbers = np.random.default_rng(seed)
        values = {
            "a": 2.0,
            "x": numbers.standard_normal(1000).astype(np.float32),
            "y": numbers.standard_normal(1000).astype(np.float32),
            "large": numbers.integers(0, 255, 4 << 20, dtype=np.uint8),
        }
        return cls(device, random.Random(seed), home, values, home / "kernels")

    def judge(
        self, source: str, *, level: str = "quick", timeout: float = 20.0, with_timing: bool = False
    ) -> str:
        given = [self.values[n] for n in ("a", "x", "y")]
        report = evaluate(
            source,
            axpy,
            given,
            device=self.device,
            level=level,
            timeout=timeout,
            with_timing=with_timing,  # type: ignore[arg-type]
        )
        assert report.outcome in OUTCOMES
        if report.outcome == "inconclusive":
            return f"inconclusive: {report.headline}"
        return report.outcome

    def accept(self, source: str, *, is_whole: bool = False) -> str:
        """Do what a `%%cuda` cell does; on a GPU, where timing takes seconds, mostly without it."""
        if self.device == "cuda" and not is_whole and self.rng.random() < 0.9:
            return self.judge(source, level="full")
        try:
            kernel = accept_source(
                source,
                axpy,
                inputs={n: self.values[n] for n in ("a", "x", "y")},
                name=f"axpy_{self.names % 4}",
                device=self.device,
                records_dir=self.records,
            )
        except NotAcceptedError as error:
            return error.attempts[0].report.outcome
        if any("record was not saved" in w for w in kernel.report.warnings):
            return "passed without a record"
        return "passed"

    def fresh(self, source: str = HONEST) -> str:
        """Return a source that has to be compiled."""
        self.names += 1
        return unique(source, self.rng.getrandbits(60))


@dataclass(frozen=True)
class Step:
    """One kind of step: what it does, what may come of it, and how often it is drawn."""

    name: str
    run: Callable[[Notebook], str]
    allowed: frozenset[str]
    weight: int = 3
    needs: str = ""


def _judged(source: str, timeout: float = 20.0) -> Callable[[Notebook], str]:
    return lambda notebook: notebook.judge(notebook.fresh(source), timeout=timeout)


# ---- someone kills ------------------------------------------------------------------------------------------


def _children(pid: int) -> list[int]:
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, IndexError, ValueError):
            if int(entry.read_text().rsplit(")", 1)[1].split()[1]) == pid:
                found.append(int(entry.parent.name))
    return found


def _descendants(pid: int) -> list[int]:
    return [d for child in _children(pid) for d in (child, *_descendants(child))]


def _meddled(
    notebook: Notebook,
    victim: Callable[[], list[int]],
    number: int,
    act: Callable[[], str],
    *,
    waits: float = 0.7,
) -> str:
    """Return `act()`, while a thread sends a signal to the victims, once there are some, at a random moment."""
    over = threading.Event()
    delay = notebook.rng.uniform(0, waits)

    def meddle() -> None:
        if over.wait(delay):
            return
        limit = time.monotonic() + 2.0
        while not over.wait(0.001) and time.monotonic() < limit:
            victims = victim()
            for pid in victims:
                with contextlib.suppress(OSError):
                    os.kill(pid, number)
            if victims:
                return

    thread = threading.Thread(target=meddle, daemon=True)
    thread.start()
    try:
        return act()
    finally:
        over.set()
        thread.join()


def _current() -> list[int]:
    return [w.pid for w in POOL._current.values() if w.is_alive]


def _spares() -> list[int]:
    return [w.pid for w in POOL._spare.values() if w.is_alive]


def _below_worker() -> list[int]:
    return [d for pid in _current() for d in _descendants(pid)]


def _with(victim: Callable[[], list[int]], number: int, *, waits: float = 0.7) -> Callable[[Notebook], str]:
    def run(notebook: Notebook) -> str:
        source = notebook.fresh()
        return _meddled(notebook, victim, number, lambda: notebook.accept(source), waits=waits)

    return run


def _spare_then_worker(notebook: Notebook) -> str:
    """Stop the spare, then kill the worker: the one that takes its place does not answer."""
    POOL.warm(notebook.device)
    for pid in _spares():
        os.kill(pid, signal.SIGSTOP)
    return _with(_current, signal.SIGKILL)(notebook)


# ---- someone presses the button ----------------------------------------------------------------------------


def _interrupted(presses: int, act: Callable[[Notebook], str], longest: float) -> Callable[[Notebook], str]:
    def run(notebook: Notebook) -> str:
        first = notebook.rng.uniform(0, longest)
        delays = [first + notebook.rng.uniform(0, 0.02) * k for k in range(presses)]
        return interrupted(lambda: act(notebook), delays)

    return run


def _start_anew(notebook: Notebook) -> str:
    POOL.close()
    return notebook.judge(HONEST)


def _save_only(notebook: Notebook) -> str:
    """Write the same records again and again, for an interrupt to fall into."""
    from llmkernel.records.store import RecordStore

    store = RecordStore(notebook.records)
    for stored in store.list():
        for _ in range(3):
            store.save(stored.record, stored.source, '{"role": "user"}\n' * 50, is_verified_here=True)
    return "passed"


# ---- files -------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _mounted(
    directory: Path, *, kilobytes: int, full: bool = False, read_only: bool = False
) -> Iterator[Path]:
    directory.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "none", directory], check=True)
    try:
        if full:
            with contextlib.suppress(OSError), (directory / "filler").open("wb", buffering=0) as file:
                while True:
                    file.write(bytes(4096))
        if read_only:
            subprocess.run(["mount", "-o", "remount,ro", directory], check=True)
        yield directory
    finally:
        subprocess.run(["umount", "-l", directory], check=True)
        directory.rmdir()


def _records_on(**how: Any) -> Callable[[Notebook], str]:
    def run(notebook: Notebook) -> str:
        kept = notebook.records
        with _mounted(notebook.home / "elsewhere", **how) as directory:
            notebook.records = directory / "kernels"
            try:
                return notebook.accept(notebook.fresh())
            finally:
                notebook.records = kept

    return run


@contextlib.contextmanager
def _environment(**changes: str) -> Iterator[None]:
    """Change variables for a new worker."""
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    POOL.close()
    try:
        yield
    finally:
        POOL.close()
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _cache_on(*variables: str, **how: Any) -> Callable[[Notebook], str]:
    def run(notebook: Notebook) -> str:
        source = notebook.fresh()
        directory = notebook.home / "elsewhere"
        changes = {name: str(directory) for name in variables}
        with _mounted(directory, **how), _environment(**changes):
            try:
                return notebook.judge(source)
            except LLMKernelError as error:
                return type(error).__name__

    return run


def _fills_up(notebook: Notebook) -> str:
    """The cache fills up while the worker lives."""
    directory = notebook.home / "elsewhere"
    with _mounted(directory, kilobytes=20000), _environment(LLMKERNEL_CACHE_DIR=str(directory)):
        if notebook.judge(notebook.fresh()) != "passed":
            return "not passed while there was room"
        with contextlib.suppress(OSError), (directory / "filler").open("wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
        return notebook.judge(notebook.fresh())


# ---- the process -------------------------------------------------------------------------------------------


def _few_descriptors(notebook: Notebook) -> str:
    """No descriptor is left for a new worker."""
    POOL.close()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(list(Path("/proc/self/fd").iterdir())) + 1, hard))
    try:
        return notebook.judge(HONEST)
    except (LLMKernelError, OSError) as error:
        return type(error).__name__
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def _in_threads(notebook: Notebook) -> str:
    """Two cells at once, as threads of the user's do it; the threads then end, and their workers must not."""
    found: list[str] = []
    sources = [notebook.fresh(), notebook.fresh()]
    threads = [threading.Thread(target=lambda s=s: found.append(notebook.judge(s))) for s in sources]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    pids = _current()
    outcome = notebook.judge(HONEST)
    return "passed" if [*found, outcome] == ["passed"] * 3 and _current() == pids else f"{found} {outcome}"


def _in_a_fork(notebook: Notebook) -> str:
    """A child of the notebook's process judges and ends; the notebook's own worker lives on."""
    notebook.judge(HONEST)
    pids = _current()
    child = os.fork()
    if child == 0:
        status = 1
        with contextlib.suppress(BaseException):
            # CUDA that its parent initialised cannot be used there, and the child is told so.
            if notebook.device == "cuda":
                with contextlib.suppress(DeviceUnavailableError):
                    notebook.judge(HONEST)
                    os._exit(3)
                os._exit(0)
            status = 0 if notebook.judge(HONEST) == "passed" else 2
            POOL.close()
            BASELINES.close()
        os._exit(status)
    _, status = os.waitpid(child, 0)
    outcome = notebook.judge(HONEST)
    return outcome if status == 0 and _current() == pids else f"child {status}, {pids} became {_current()}"


def _garbage(notebook: Notebook) -> str:
    """Bytes that are no frame come out of the worker."""
    return _spoken_into(
        notebook, "stdout", lambda: notebook.rng.randbytes(notebook.rng.choice((1, 50, 100_000)))
    )


# Made once: megabytes that a short-lived thread allocates stay with the allocator, and are no leak of the worker's.
_NOISE = b"noise without a line end " * 200_000


def _talks(notebook: Notebook) -> str:
    """The worker writes megabytes to standard error."""
    return _spoken_into(notebook, "stderr", lambda: _NOISE)


def _spoken_into(notebook: Notebook, stream: str, data: Callable[[], bytes]) -> str:
    notebook.judge(HONEST)

    def inject() -> None:
        for worker in workers():
            popen = worker._process._process
            if popen is None or worker.pid not in _current():
                continue
            ours = Path(f"/proc/self/fd/{getattr(popen, stream).fileno()}").readlink()
            for entry in Path(f"/proc/{worker.pid}/fd").iterdir():
                with contextlib.suppress(OSError):
                    if entry.readlink() == ours:
                        with entry.open("wb", buffering=0) as pipe:
                            os.set_blocking(pipe.fileno(), False)
                            pipe.write(data())
                        return

    thread = threading.Timer(notebook.rng.uniform(0, 0.5), inject)
    thread.start()
    try:
        return notebook.accept(notebook.fresh())
    finally:
        thread.join()


STEPS = (
    Step("honest", _judged(HONEST), PASSED, 6),
    Step("honest, in full", lambda n: n.accept(n.fresh()), PASSED, 6),
    Step("honest, prints", _judged(PRINTS), PASSED),
    *(
        Step(name, _judged(source, HANG_SECONDS if name in ("hang", "deadlock") else 20.0), allowed)
        for name, (source, allowed) in WITH_FAULT.items()
    ),
    Step("worker killed", _with(_current, signal.SIGKILL), PASSED, 8),
    Step("worker terminated", _with(_current, signal.SIGTERM), PASSED),
    Step("worker stopped", _with(_current, signal.SIGSTOP), PASSED, 4),
    Step("spare killed", _with(_spares, signal.SIGKILL), PASSED),
    Step("spare stopped, worker killed", _spare_then_worker, PASSED),
    Step("compiler or run killed", _with(_below_worker, signal.SIGKILL), PASSED, 8, needs="cpu"),
    Step("interrupted", _interrupted(1, lambda n: n.accept(n.fresh()), 1.2), STOPPED, 12),
    Step("interrupted twice", _interrupted(2, lambda n: n.accept(n.fresh()), 1.0), STOPPED, 6),
    Step("interrupted at the start", _interrupted(1, _start_anew, 0.3), STOPPED, 8),
    Step("interrupted in a hang", _interrupted(1, _judged(candidates.HANGS, 5.0), 1.0), STOPPED, 4),
    Step("interrupted while saving", _interrupted(1, _save_only, 0.05), STOPPED, 10),
    Step(
        "records on a full disk",
        _records_on(kilobytes=64, full=True),
        frozenset({"passed without a record"}),
        needs="mount",
    ),
    Step(
        "records on a small disk",
        _records_on(kilobytes=24),
        frozenset({"passed", "passed without a record"}),
        needs="mount",
    ),
    Step(
        "records on a read-only disk",
        _records_on(kilobytes=64, read_only=True),
        frozenset({"passed without a record"}),
        needs="mount",
    ),
    Step(
        "cache on a full disk",
        _cache_on("LLMKERNEL_CACHE_DIR", kilobytes=64, full=True),
        PASSED,
        needs="mount",
    ),
    Step(
        "home is read-only",
        _cache_on("HOME", "XDG_CACHE_HOME", kilobytes=64, read_only=True),
        PASSED,
        needs="mount",
    ),
    Step(
        "cache and temporary files on a full disk",
        _cache_on("LLMKERNEL_CACHE_DIR", "TMPDIR", kilobytes=64, full=True),
        PASSED,
        needs="mount",
    ),
    Step("cache fills up", _fills_up, PASSED, 2, needs="mount"),
    Step("no descriptors", _few_descriptors, frozenset({"WorkerError"})),
    Step("in threads", _in_threads, PASSED),
    Step("in a fork", _in_a_fork, PASSED),
    Step("garbage from the worker", _garbage, PASSED),
    Step("noise from the worker", _talks, PASSED),
)
assert HUGE_SCRATCH in [source for source, _ in WITH_FAULT.values()]
