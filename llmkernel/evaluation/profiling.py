"""What limits a kernel: a few figures with a sentence each, for a person and for a provider.

Nsight Compute's counters where it may run, else what the evaluation measures itself: time, bandwidth, occupancy,
registers and spills. Without a GPU only what the compiler says of a named architecture is left.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from llmkernel.candidate.candidate import parse_candidate
from llmkernel.devices.cuda.profile import KernelCounters, NcuRun, run_ncu
from llmkernel.evaluation.binding import prepare
from llmkernel.evaluation.profile_advice import (
    bandwidth_advice,
    compute_advice,
    hits_advice,
    memory_advice,
    occupancy_advice,
    registers_advice,
    spills_advice,
    stall_words,
)
from llmkernel.evaluation.report import Report
from llmkernel.evaluation.timed import TimedKernel
from llmkernel.evaluation.timing import REQUEST_SECONDS, bytes_moved, draws_for_timing
from llmkernel.evaluation.worker.client import POOL
from llmkernel.problem.problem import Problem

NCU, OWN, COMPILER = "Nsight Compute", "own counters", "the compiler"
NO_GPU = (
    "No times, bandwidth or counters: nothing ran on a GPU, and an emulation's times say nothing about one."
)
SAMPLES = 50
Resources = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Figure:
    """One figure of a profile.

    Attributes
    ----------
    name, value : str
    meaning : str
        One or two sentences: what it says, and what to do about it.
    """

    name: str
    value: str
    meaning: str


@dataclass(frozen=True)
class Profile:
    """What was found of one kernel.

    Attributes
    ----------
    source : str
        `NCU`, `OWN` or `COMPILER`.
    kernel : str
        The kernel of the `.cu` file that the figures are of: the one that took longest.
    figures : tuple of Figure
    notes : tuple of str
        Where the figures come from and what they leave out, one sentence each.
    """

    source: str
    kernel: str
    figures: tuple[Figure, ...]
    notes: tuple[str, ...] = ()

    def feedback(self) -> str:
        """Return the profile as a provider is told it."""
        about = f" of `{self.kernel}`" if self.kernel else ""
        lines = [f"Profile{about} ({self.source}):"]
        lines += [f"- {f.name}: {f.value}. {f.meaning}" for f in self.figures]
        return "\n".join([*lines, *self.notes])


def profile_problem(problem: Problem, source: str, *, device: str, arch: str | None = None) -> Profile:
    """Profile a candidate that passed, on the problem's own inputs.

    Parameters
    ----------
    problem : Problem
    source : str
        The whole `.cu` file.
    device : str
        ``cuda`` or ``cpu``; on ``cpu`` only the compiler's figures are given.
    arch : str, optional
        Architecture to compile for.

    Raises
    ------
    llmkernel.errors.LLMKernelError
        When it does not compile or bind here.
    llmkernel.evaluation.worker.client.WorkerLostError
    """
    ncu = _counters(problem, source, device)
    worker = POOL.get(device)
    draws = [problem.host_inputs()] if ncu.kernels or device == "cpu" else draws_for_timing(problem, device)
    with TimedKernel(worker, source, draws, arch=arch) as timed:
        if device == "cpu":
            return of_resources(timed.resources, timed.arch)
        if ncu.kernels:
            return _with_resources(of_counters(ncu), timed.resources)
        timed.turn()  # warm-up: lazy loading and clocks
        median = float(np.median(timed.turn(SAMPLES)))
        resources = timed.resources_with_occupancy()
    answer, _ = worker.request({"op": "roofline", "dtypes": []}, timeout=REQUEST_SECONDS)
    bandwidth = answer["roofline"].get("bandwidth_bytes_per_s")
    return of_measurements(
        resources, median, bytes_moved(problem), bandwidth, notes=(f"No counters: {ncu.problem}.",)
    )


def profile_report(problem: Problem, source: str, report: Report, *, device: str) -> Profile | None:
    """Profile a candidate by its report's own figures where Nsight Compute may not run; None where there are none.

    This is what the loop tells a provider that shall make a right candidate faster: nothing is timed again.
    """
    ncu = _counters(problem, source, device)
    resources: Resources = report.compile.get("kernels") or {}
    if ncu.kernels:
        return _with_resources(of_counters(ncu), resources)
    timing = report.timing
    if timing is None or timing.is_emulation:
        return of_resources(resources, str(report.compile.get("arch", ""))) if resources else None
    rates = timing.device.get("roofline") or {}
    bandwidth = rates.get("bandwidth_bytes_per_s")
    return of_measurements(resources, timing.kernel.median_ms, timing.bytes_moved or 0, bandwidth)


def of_counters(run: NcuRun) -> Profile:
    """Return the five figures of Nsight Compute for the kernel that took longest."""
    first, *others = run.kernels
    figures = [
        _percent("DRAM throughput", first.memory_percent, "of what it can sustain", memory_advice),
        _percent("compute throughput", first.compute_percent, "of what it can sustain", compute_advice),
        _percent("achieved occupancy", first.occupancy_percent, "of the warps that fit", occupancy_advice),
        _percent("L2 hit rate", first.l2_hit_percent, "of the sectors asked for", hits_advice),
        _stall(first),
    ]
    total = sum(k.duration_ns for k in run.kernels)
    notes = [
        "Measured by Nsight Compute over one run, with the clocks as they are; its times are no timings."
    ]
    if others:
        share = 100 * first.duration_ns / total
        rest = ", ".join(f"`{short_name(k.kernel)}` {100 * k.duration_ns / total:.0f} %" for k in others[:4])
        notes.append(f"It takes {share:.0f} % of the time of {len(run.kernels)} kernels; the others: {rest}.")
    return Profile(NCU, short_name(first.kernel), tuple(f for f in figures if f is not None), tuple(notes))


def of_measurements(
    resources: Resources,
    median_ms: float,
    nbytes: int,
    bandwidth: float | None,
    notes: tuple[str, ...] = (),
) -> Profile:
    """Return the figures that the evaluation measures itself.

    Parameters
    ----------
    resources : mapping
        Registers, spills and occupancy by kernel.
    median_ms : float
    nbytes : int
        What must move: inputs once and results once.
    bandwidth : float or None
        Of a copy on this GPU, bytes a second.
    notes : tuple of str
    """
    figures = [
        Figure("time", f"{1e3 * median_ms:.4g} µs", "The median of the whole launch plan, cold cache.")
    ]
    rate = nbytes / (1e-3 * median_ms) if median_ms else 0.0
    if rate and bandwidth:
        percent = 100 * rate / bandwidth
        value = f"{rate / 1e9:.0f} GB/s, {percent:.0f} % of a copy's {bandwidth / 1e9:.0f} GB/s"
        figures.append(Figure("achieved bandwidth", value, bandwidth_advice(percent)))
    return Profile(OWN, _busiest(resources), (*figures, *_resource_figures(resources)), notes)


def of_resources(resources: Resources, arch: str, reason: str = NO_GPU) -> Profile:
    """Return what the compiler alone can tell.

    Parameters
    ----------
    resources : mapping
        Registers and spills by kernel.
    arch : str
        What they are of.
    reason : str
        Why there is nothing else, one sentence.
    """
    figures = _resource_figures(resources)
    missing = "NVRTC is not installed: pip install 'llmkernel[cuda]' shows registers and spills here too."
    notes = (reason, f"Compiled for {arch}." if figures else missing)
    return Profile(COMPILER, _busiest(resources), tuple(figures), notes)


def short_name(kernel: str) -> str:
    """Return a kernel's name without its parameters: ``softmax<float, 32>``."""
    depth, name = 0, kernel.removeprefix("void ")
    for at, character in enumerate(name):
        depth += {"<": 1, ">": -1}.get(character, 0)
        if character == "(" and depth == 0:
            return name[:at]
    return name


def _counters(problem: Problem, source: str, device: str) -> NcuRun:
    if device != "cuda":
        return NcuRun((), problem="there is no GPU")
    candidate = parse_candidate(source)
    prepared = prepare(candidate, problem.host_inputs(), POOL.get(device).limits())
    return run_ncu(source, prepared.plan, prepared.payloads)


def _with_resources(profile: Profile, resources: Resources) -> Profile:
    """Add what counters do not tell: registers and spills, in one note."""
    data = _find(resources, profile.kernel)
    if data is None or data.get("registers") is None:
        return profile
    spilled = data.get("spill_bytes")
    spills = "" if spilled is None else f", {spilled} bytes of spills"
    note = f"It uses {data['registers']} registers a thread{spills}."
    return Profile(profile.source, profile.kernel, profile.figures, (note, *profile.notes))


def _percent(name: str, value: float | None, of: str, advice: Any) -> Figure | None:
    return None if value is None else Figure(name, f"{value:.0f} % {of}", advice(value))


def _stall(kernel: KernelCounters) -> Figure | None:
    if not kernel.stalls:
        return None
    reason, cycles = kernel.stalls[0]
    total = sum(c for _, c in kernel.stalls)
    if not total:
        return None
    waits, advice = stall_words(reason)
    value = f"{reason} ({waits}), {100 * cycles / total:.0f} % of the waiting"
    return Figure("what warps wait for", value, advice)


def _resource_figures(resources: Resources) -> list[Figure]:
    name = _busiest(resources)
    if not name:
        return []
    data, figures = resources[name], []
    occupancy, registers, spilled = (data.get(k) for k in ("occupancy", "registers", "spill_bytes"))
    if occupancy is not None:
        percent = 100 * float(occupancy)
        figures.append(
            Figure("occupancy", f"{percent:.0f} % of the threads that fit", occupancy_advice(percent))
        )
    if registers is not None:
        figures.append(Figure("registers", f"{registers} a thread", registers_advice(int(registers))))
    if spilled is not None:
        figures.append(Figure("spills", f"{spilled} bytes", spills_advice(int(spilled))))
    return figures


def _busiest(resources: Resources) -> str:
    """Return the kernel with most registers: without counters nobody knows which takes longest."""
    known = [k for k, data in resources.items() if data.get("registers") is not None]
    return max(known, key=lambda k: int(resources[k]["registers"]), default="")


def _find(resources: Resources, kernel: str) -> Mapping[str, Any] | None:
    bare = kernel.replace(" ", "")
    found = next((d for k, d in resources.items() if k.replace(" ", "") == bare), None)
    only = next(iter(resources.values())) if len(resources) == 1 else None
    return found if found is not None else only
