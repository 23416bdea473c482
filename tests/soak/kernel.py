"""The soak through a real Jupyter kernel: cells, the stop button, and workers killed from outside."""

from __future__ import annotations

import collections
import contextlib
import os
import random
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.kernel.conftest import kernel_environment, run_cli
from tests.kernel.session import Session
from tests.soak import candidates, watch

SETUP = """
import hashlib, numpy as np
a = 2.0
x = np.random.default_rng(1).standard_normal(1000).astype('float32')
y = np.random.default_rng(2).standard_normal(1000).astype('float32')
def axpy(a, x, y):
    return np.float32(a) * x + y if x.dtype == np.float32 else a * x + y
def state():
    import os, threading
    arrays = hashlib.sha256(x.tobytes() + y.tobytes()).hexdigest()
    rss = int(open('/proc/self/statm').read().split()[1]) * 4096
    return arrays, callable(axpy), rss
"""
# An endless kernel would run for the 20 s that a cell gives it: only the stop button ends it here.
KINDS = (
    "honest",
    "wrong",
    "out of bounds",
    "trap",
    "does not compile",
    "killed",
    "stopped",
    "interrupted",
    "hang, interrupted",
)


class KernelSoak:
    """One kernel, cell after cell."""

    def __init__(self, session: Session, seed: int, device: str) -> None:
        self.session = session
        self.rng = random.Random(seed)
        self.device = device
        self.pid = session.manager.provisioner.process.pid
        self.violations: list[str] = []
        self.outcomes: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
        self.resident: list[int] = []
        session.run(SETUP)
        self.arrays = session.value("state()[:2]")

    def cell(self, source: str, meddle: Callable[[], None] | None = None) -> str:
        """Run a `%%cuda` cell, and meddle with it at a random moment; return its outcome."""
        text = f"%%cuda axpy_cuda --from axpy --device {self.device}\n{candidates.unique(source, self.rng.getrandbits(60))}"
        timer = threading.Timer(self.rng.uniform(0.05, 1.5), meddle or (lambda: None))
        timer.start()
        try:
            reply = self.session.run(text).reply
        finally:
            timer.cancel()
            timer.join()
        if reply["status"] == "ok":
            return "passed"
        if reply["ename"] != "NotAcceptedError":
            return str(reply["ename"])
        return str(reply["evalue"]).split("was not accepted: ")[1].split(".")[0]

    def workers(self) -> list[int]:
        return [pid for pid, parent, name in _processes() if parent == self.pid and name.startswith("python")]

    def _signal(self, number: int) -> None:
        for pid in self.workers()[:1]:
            with contextlib.suppress(OSError):
                os.kill(pid, number)

    def step(self, number: int) -> str:
        kind = self.rng.choice(KINDS)
        allowed = {"passed"}
        if kind == "killed":
            outcome = self.cell(candidates.HONEST, lambda: self._signal(signal.SIGKILL))
        elif kind == "stopped":
            outcome = self.cell(candidates.HONEST, lambda: self._signal(signal.SIGSTOP))
        elif kind == "interrupted":
            outcome = self.cell(candidates.HONEST, self.session.manager.interrupt_kernel)
            allowed = {"passed", "KeyboardInterrupt"}
        elif kind == "hang, interrupted":
            outcome = self.cell(candidates.HANGS, self.session.manager.interrupt_kernel)
            allowed = {"KeyboardInterrupt"}
        elif kind == "honest":
            outcome = self.cell(candidates.HONEST)
        else:
            source, known = candidates.WITH_FAULT[kind]
            outcome, allowed = self.cell(source), set(known)
        self.outcomes[kind][outcome] += 1
        wrong = [] if outcome in allowed else [f"ended {outcome!r}"]
        found = self.session.value("state()")
        if found[:2] != self.arrays:
            wrong.append(f"the notebook changed: {found[:2]}")
        self.resident.append(found[2])
        limit = time.monotonic() + watch.SETTLE_SECONDS
        while len(self._below()) > 2 and time.monotonic() < limit:
            time.sleep(0.05)
        if len(self._below()) > 2:
            wrong.append(f"more than a worker and a spare: {self._below()}")
        self.violations += [f"{number} {kind}: {w}" for w in wrong]
        return f"{kind}: {outcome}"

    def _below(self) -> list[int]:
        """Return every process below the kernel."""
        parents = {pid: parent for pid, parent, _ in _processes()}
        found = [self.pid]
        for pid in found:
            found += [child for child, parent in parents.items() if parent == pid]
        return found[1:]


def _processes() -> Iterator[tuple[int, int, str]]:
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, IndexError, ValueError):
            name, rest = entry.read_text().split("(", 1)[1].rsplit(")", 1)
            if rest.split()[0] != "Z":  # ended, and not ours to reap
                yield int(entry.parent.name), int(rest.split()[1]), name


def soak_kernel(
    evaluations: int, seed: int, device: str, listener: Callable[[str], None] | None = None
) -> dict[str, Any]:
    """Run `evaluations` cells and return a summary, as `tests.soak.run.soak` does."""
    say = listener or (lambda _: None)
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="llmkernel-soak-") as name:
        directory = Path(name)
        environment = os.environ | kernel_environment(directory)
        os.environ.update(environment)
        run_cli("install", "--prefix", str(directory / "prefix"))
        notebooks = directory / "notebooks"
        notebooks.mkdir()
        with Session.start("llm-cuda", cwd=notebooks, env=environment) as session:
            run = KernelSoak(session, seed, device)
            for number in range(1, evaluations + 1):
                before, mark = len(run.violations), time.perf_counter()
                say(f"{number} {run.step(number)} ({time.perf_counter() - mark:.1f} s)")
                for violation in run.violations[before:]:
                    say(f"    VIOLATION {violation}")
            below = run._below()
        limit = time.monotonic() + watch.SETTLE_SECONDS
        while (alive := {pid for pid, _, _ in _processes()} & set(below)) and time.monotonic() < limit:
            time.sleep(0.05)
        run.violations += [f"process {pid} outlived its kernel" for pid in alive]
        run.violations += watch.broken_records(notebooks / "kernels")
    return {
        "evaluations": evaluations,
        "seed": seed,
        "device": device,
        "seconds": round(time.perf_counter() - started, 1),
        "violations": run.violations,
        "resident_mib": {"first": run.resident[0] >> 20, "last": run.resident[-1] >> 20},
        "outcomes": {kind: dict(count) for kind, count in sorted(run.outcomes.items())},
    }
