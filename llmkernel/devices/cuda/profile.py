"""Nsight Compute's counters over one run of a plan: how busy memory and multiprocessors were, and what warps waited for.

`ncu` replays each kernel several times to read its counters, so it measures in a process of its own, and its times are
no timings. It needs permission to read the GPU's counters; where it has none, the reason is told.
"""

from __future__ import annotations

import csv
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from llmkernel.devices.base import Bytes
from llmkernel.devices.cuda.tool_process import own_environment, run_command, write_job
from llmkernel.devices.plan import LaunchPlan

TIMEOUT_SECONDS = 60.0
# A plan that repeats a step launches the same kernels again and again, and each is replayed several times.
MAX_LAUNCHES = 20

DURATION = "gpu__time_duration.sum"
MEMORY = "dram__throughput.avg.pct_of_peak_sustained_elapsed"
COMPUTE = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
OCCUPANCY = "sm__warps_active.avg.pct_of_peak_sustained_active"
L2_HITS = "lts__t_sector_hit_rate.pct"
# What a warp that does not issue waits for, as Nsight Compute's "Warp State Statistics" names it.
STALLS = (
    "barrier",
    "branch_resolving",
    "dispatch_stall",
    "drain",
    "imc_miss",
    "lg_throttle",
    "long_scoreboard",
    "math_pipe_throttle",
    "membar",
    "mio_throttle",
    "no_instruction",
    "not_selected",
    "short_scoreboard",
    "sleeping",
    "tex_throttle",
    "wait",
)
_STALL = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
METRICS = (DURATION, MEMORY, COMPUTE, OCCUPANCY, L2_HITS, *(_STALL.format(s) for s in STALLS))

_FORBIDDEN = "ERR_NVGPUCTRPERM"
_NANOSECONDS = {"ns": 1.0, "nsecond": 1.0, "us": 1e3, "usecond": 1e3, "ms": 1e6, "msecond": 1e6, "s": 1e9}


@dataclass(frozen=True)
class KernelCounters:
    """Counters of one kernel, those of all its launches together weighed by their time; None where ncu has none.

    Attributes
    ----------
    kernel : str
        As ncu names it.
    launches : int
    duration_ns : float
        Of all launches, under the profiler.
    memory_percent, compute_percent : float or None
        Throughput of DRAM and of the multiprocessors, of what they can sustain.
    occupancy_percent : float or None
        Warps that were resident, of those that fit.
    l2_hit_percent : float or None
    stalls : tuple of (str, float)
        Reason and cycles that a warp waits for it between two instructions, the greatest first.
    """

    kernel: str
    launches: int
    duration_ns: float
    memory_percent: float | None = None
    compute_percent: float | None = None
    occupancy_percent: float | None = None
    l2_hit_percent: float | None = None
    stalls: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True)
class NcuRun:
    """What ncu found.

    Attributes
    ----------
    kernels : tuple of KernelCounters
        The one that took longest first.
    seconds : float
    problem : str
        Why there is none; empty where there are some.
    """

    kernels: tuple[KernelCounters, ...]
    seconds: float = 0.0
    problem: str = ""


def find_ncu() -> str | None:
    """Return the path of Nsight Compute's `ncu`, or None where it is not installed."""
    homes = [os.environ.get("CUDA_HOME", ""), os.environ.get("CUDA_PATH", ""), "/usr/local/cuda"]
    folders = [str(Path(h) / "bin") for h in homes if h]
    folders += sorted(map(str, Path("/opt/nvidia/nsight-compute").glob("*")), reverse=True)
    return shutil.which("ncu") or shutil.which("ncu", path=os.pathsep.join(folders))


def run_ncu(
    source: str, plan: LaunchPlan, payloads: Mapping[str, Bytes], *, timeout: float = TIMEOUT_SECONDS
) -> NcuRun:
    """Profile one run of `plan`, in a process of its own; clocks are left as they are.

    Parameters
    ----------
    source : str
        The whole `.cu` file.
    plan : LaunchPlan
    payloads : mapping
        Bytes of every input and inout buffer.
    timeout : float
        Seconds.
    """
    program = find_ncu()
    if program is None:
        return NcuRun((), problem="Nsight Compute (ncu) is not installed")
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="llmkernel-profile-") as name:
        write_job(Path(name), source, plan, payloads)
        command = [program, "--csv", "--page", "raw", "--print-units", "base", "--clock-control", "none"]
        command += ["--profile-from-start", "off", "--target-processes", "all"]
        command += ["--launch-count", str(MAX_LAUNCHES), "--metrics", ",".join(METRICS)]
        command += [sys.executable, "-m", "llmkernel.devices.cuda.profile_run", name]
        # ncu's lock file: the system's folder may hold one of another user.
        log, problem = run_command(command, timeout, own_environment(Path(name)))
    kernels = parse_csv(log)
    problem = "" if kernels else problem or explain(log)
    return NcuRun(kernels, time.perf_counter() - started, problem)


def explain(log: str) -> str:
    """Return one sentence on why ncu has no counters."""
    if _FORBIDDEN in log:
        return (
            "this user may not read the GPU's counters (ERR_NVGPUCTRPERM): the administrator allows it with the "
            "driver's option NVreg_RestrictProfilingToAdminUsers=0"
        )
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    errors = [line.removeprefix("==ERROR==").strip() for line in lines if line.startswith("==ERROR==")]
    return (errors or lines[-1:] or ["ncu printed nothing"])[0][:200]


def parse_csv(log: str) -> tuple[KernelCounters, ...]:
    """Read the counters of ``ncu --csv --page raw``, one entry a kernel, the one that took longest first.

    Parameters
    ----------
    log : str
        What ncu printed; any text is read without an error, and what is no table gives no counters.
    """
    lines = [line for line in log.splitlines() if not line.startswith("==")]
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        return ()
    try:
        header, units, *rows = list(csv.reader(lines[start:]))
    except (csv.Error, ValueError):
        return ()
    if "Kernel Name" not in header:
        return ()
    scale = _NANOSECONDS.get(dict(zip(header, units, strict=False)).get(DURATION, ""), 1.0)
    launches: dict[str, list[dict[str, float]]] = {}
    for row in rows:
        cells = dict(zip(header, row, strict=False))
        figures = {m: f for m in METRICS if (f := _number(cells.get(m, ""))) is not None}
        if figures.get(DURATION, 0.0) > 0:
            launches.setdefault(cells["Kernel Name"], []).append(figures)
    found = [_counters(kernel, rows, scale) for kernel, rows in launches.items()]
    return tuple(sorted(found, key=lambda k: -k.duration_ns))


def _counters(kernel: str, rows: list[dict[str, float]], scale: float) -> KernelCounters:
    stalls = [(s, f) for s in STALLS if (f := _mean(rows, _STALL.format(s))) is not None]
    return KernelCounters(
        kernel,
        len(rows),
        scale * sum(r[DURATION] for r in rows),
        memory_percent=_mean(rows, MEMORY),
        compute_percent=_mean(rows, COMPUTE),
        occupancy_percent=_mean(rows, OCCUPANCY),
        l2_hit_percent=_mean(rows, L2_HITS),
        stalls=tuple(sorted(stalls, key=lambda s: -s[1])),
    )


def _mean(rows: list[dict[str, float]], metric: str) -> float | None:
    """Return the mean over launches, weighed by their durations."""
    known = [(r[metric], r[DURATION]) for r in rows if metric in r]
    total = sum(weight for _, weight in known)
    return sum(value * weight for value, weight in known) / total if known and total else None


def _number(text: str) -> float | None:
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        return None
    return value if abs(value) < float("inf") else None
