"""The soak itself: draws steps, looks after each whether all is as it was, and sums up."""

from __future__ import annotations

import collections
import os
import platform
import random
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

import llmkernel
from llmkernel.evaluation.worker.client import POOL
from tests.soak import watch
from tests.soak.candidates import ON_GPU
from tests.soak.steps import STEPS, Notebook, Step

# Growth of the resident memory that is not noise, over a whole run.
MAX_GROWTH_BYTES = 48 << 20
WARM_UP = 8
# Of what a killed compilation left, before another one may remove it.
LEAST_AGE_SECONDS = 6.0


@contextmanager
def _own_directories() -> Iterator[Path]:
    """Give a home, a cache and a directory of temporary files of its own, so that what is left behind is ours."""
    changes = {}
    home = Path(tempfile.mkdtemp(prefix="llmkernel-soak-"))
    for name, folder in (
        ("HOME", ""),
        ("XDG_CACHE_HOME", ".cache"),
        ("TMPDIR", "tmp"),
        ("LLMKERNEL_CACHE_DIR", "cache"),
    ):
        (home / folder).mkdir(exist_ok=True)
        changes[name] = str(home / folder)
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    tempfile.tempdir = None
    POOL.close()
    try:
        yield home
    finally:
        POOL.close()
        for name, value in before.items():
            if value is None:
                os.environ.pop(name)
            else:
                os.environ[name] = value
        tempfile.tempdir = None
        shutil.rmtree(home, ignore_errors=True)


class Soak:
    """One soak.

    Parameters
    ----------
    notebook : Notebook
    processes : watch.Processes
    """

    def __init__(self, notebook: Notebook, processes: watch.Processes) -> None:
        self.notebook = notebook
        self.processes = processes
        self.violations: list[str] = []
        self.outcomes: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
        self.resident: list[int] = []
        self.grown: collections.Counter[str] = collections.Counter()
        self.digest = watch.digest(notebook.values)
        self.files = self.threads = 0

    def settle(self, *, is_quick: bool) -> None:
        """Do what is done once, and take the baselines."""
        for _ in range(1 if is_quick else 2):
            self.notebook.judge(self.notebook.fresh())
            # Whole: on a GPU the first accepted kernel makes a context, which stays.
            self.notebook.accept(self.notebook.fresh(), is_whole=True)
        POOL.wait_for_spare(self.notebook.device)
        self.files, self.threads = watch.own_files(), watch.own_threads()

    def take(self, number: int, step: Step) -> str:
        try:
            outcome = step.run(self.notebook)
        except Exception as error:  # whatever it is: only listed outcomes may come out
            outcome = f"{type(error).__name__}: {error}"
            traceback.print_exc()
        self.outcomes[step.name][outcome.split(":")[0]] += 1
        wrong = self._look(step, outcome)
        self.violations += [f"{number} {step.name}: {w}" for w in wrong]
        return outcome

    def _look(self, step: Step, outcome: str) -> list[str]:
        allowed = step.allowed | (
            ON_GPU.get(step.name, step.allowed) if self.notebook.device == "cuda" else set()
        )
        wrong = [] if outcome in allowed else [f"ended {outcome!r}"]
        if watch.digest(self.notebook.values) != self.digest:
            wrong.append("an array of the notebook changed")
        left = self.processes.left_over()
        if left:
            wrong.append(f"processes left over: {left}")
        for what, count, usual in (
            ("descriptors", watch.own_files, self.files),
            ("threads", watch.own_threads, self.threads),
        ):
            seen = watch.settled(count, usual)
            if seen > usual:
                detail = f": {watch.open_files()}" if what == "descriptors" else ""
                wrong.append(f"{seen} {what}, {usual} before{detail}")
                setattr(self, "files" if what == "descriptors" else "threads", seen)
        wrong += watch.broken_records(self.notebook.records)
        kept = watch.settled_list(lambda: watch.temporary_files(self.notebook.home / "tmp"))
        if kept:
            wrong.append(f"temporary files left: {kept[:5]}")
            for path in kept:
                shutil.rmtree(self.notebook.home / "tmp" / path, ignore_errors=True)
        self.resident.append(watch.resident_bytes())
        if len(self.resident) > 1:
            self.grown[step.name] += self.resident[-1] - self.resident[-2]
        return wrong

    def finish(self, *, is_quick: bool) -> None:
        """Look at what only the next writer removes."""
        if not is_quick:
            time.sleep(LEAST_AGE_SECONDS)
        if self.notebook.accept(self.notebook.fresh()) != "passed":
            self.violations.append("the last evaluation did not pass")
        for name in () if is_quick else range(4):
            self.notebook.names = name
            self.notebook.accept(self.notebook.fresh())
        left = [p for p in watch.files_in(self.notebook.home / "cache") if "/work-" in p and not is_quick]
        left += [p for p in watch.files_in(self.notebook.records) if ".pending-" in p or ".next" in p]
        if left:
            self.violations.append(f"left for good: {left[:5]}")
        POOL.close()
        left = list(self.processes.left_over().values()) + watch.temporary_files(self.notebook.home / "tmp")
        if left:
            self.violations.append(f"left after the pool was closed: {left}")

    def growth_bytes(self) -> int:
        """Return how much the resident memory rose along its trend (Theil-Sen), after a warm-up."""
        sizes = self.resident[len(self.resident) // 5 :]
        if len(sizes) < WARM_UP:
            return 0
        index = np.arange(len(sizes))
        i, j = np.triu_indices(len(sizes), 1)
        slopes = (np.array(sizes)[j] - np.array(sizes)[i]) / (index[j] - index[i])
        return int(np.median(slopes) * len(sizes))


def soak(
    evaluations: int,
    seed: int,
    device: str = "cpu",
    *,
    only: Sequence[str] | None = None,
    is_quick: bool = False,
    seconds: float | None = None,
    listener: Callable[[str], None] | None = None,
) -> dict[str, Any]:
    """Take `evaluations` steps, drawn at random or those that `only` names in turn, and return a summary."""
    started = time.perf_counter()
    say = listener or (lambda _: None)
    rng = random.Random(seed)
    has = {"", "cpu"} if device == "cpu" else {""}
    has |= {"mount"} if device == "cpu" and _can_mount() else set()
    known = [s for s in STEPS if s.needs in has]
    if only:
        drawn = [next(s for s in STEPS if s.name == only[i % len(only)]) for i in range(evaluations)]
        drawn = [s for s in drawn if s in known]
    else:
        drawn = rng.choices(known, [s.weight for s in known], k=evaluations)
    with _own_directories() as home:
        run = Soak(Notebook.open(device, seed, home), watch.Processes())
        run.settle(is_quick=is_quick)
        for number, step in enumerate(drawn, 1):
            if seconds is not None and time.perf_counter() - started > seconds:
                drawn = drawn[: number - 1]
                break
            before, mark = len(run.violations), time.perf_counter()
            outcome = run.take(number, step)
            say(f"{number} {step.name}: {outcome} ({time.perf_counter() - mark:.1f} s)")
            for violation in run.violations[before:]:
                say(f"    VIOLATION {violation}")
        run.finish(is_quick=is_quick)
        growth = run.growth_bytes()
    if growth > MAX_GROWTH_BYTES:
        run.violations.append(f"the resident memory grew by {growth >> 20} MiB")
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "commit": _commit(),
        "versions": {
            "llmkernel": llmkernel.__version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
            "system": platform.system(),
        },
        "device": device,
        "seed": seed,
        "evaluations": len(drawn),
        "seconds": round(time.perf_counter() - started, 1),
        "violations": run.violations,
        "resident_mib": {
            "first": run.resident[0] >> 20,
            "last": run.resident[-1] >> 20,
            # Kilobytes by which memory grew over the steps of each kind.
            "grown_kib": {k: v >> 10 for k, v in run.grown.most_common() if abs(v) >> 10},
            "trend": round(growth / (1 << 20), 1),
        },
        "outcomes": {name: dict(count) for name, count in sorted(run.outcomes.items())},
        "without": sorted({s.name for s in STEPS} - {s.name for s in known}),
    }


def _can_mount() -> bool:
    directory = tempfile.mkdtemp()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "none", directory]
    try:
        if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
            return False
        subprocess.run(["umount", directory], check=True)
        return True
    except FileNotFoundError:
        return False
    finally:
        Path(directory).rmdir()


def _commit() -> str:
    found = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    )
    return found.stdout.strip() if found.returncode == 0 else "unknown"


if sys.platform != "linux":
    raise ImportError("The soak looks at processes through /proc: it needs Linux.")
