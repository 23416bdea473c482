"""Races: what the source lets suspect, what racecheck sees, and what other orders of blocks and warps show.

A race that ends well in every run is invisible to values and repeats. On the `cpu` device the order of threads is chosen;
on a GPU it is turned around by sleeps (`llmkernel.candidate.delays`). On both, racecheck looks where the source shows
accesses to shared memory that no barrier separates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from llmkernel.candidate.delays import ORDERS, delayed_source, shares_memory
from llmkernel.candidate.missing_barriers import Suspicion, missing_barriers
from llmkernel.devices.base import DeviceLimits, ExecutionOptions
from llmkernel.errors import CandidateError, CompileError, LLMKernelError
from llmkernel.evaluation.aside import Compilation
from llmkernel.evaluation.draw import Draw, Finding
from llmkernel.evaluation.report import CheckResult
from llmkernel.evaluation.tools import run_tool
from llmkernel.evaluation.worker.client import WorkerLostError
from llmkernel.problem.workloads import Workload, element_count, new_seed

if TYPE_CHECKING:
    from llmkernel.evaluation.judge import Judge

BARRIERS = "barriers"
THREAD_ORDER = "thread order"
# Sleeps cost time for each wave of blocks.
_LARGEST_ELEMENTS = 1 << 18
# So does racecheck, for each access.
_LARGEST_INSTRUMENTED = 1 << 17
_DRAWS = 3
_SHOWN = 3
# Outcomes that a race in shared memory takes.
_FACES = frozenset(
    ("wrong_value", "non_deterministic", "non_finite", "not_written", "uninitialised_read", "data_race")
)


@lru_cache(maxsize=32)
def suspicions_of(source: str) -> tuple[Suspicion, ...]:
    """Return what `missing_barriers` suspects, asked once for each source."""
    return missing_barriers(source)


def note_suspicions(judge: Judge) -> None:
    """Say where a barrier seems to be missing: a warning, whatever the runs show."""
    found = suspicions_of(judge.source)
    if found:
        sentences = [str(s) for s in found[:_SHOWN]]
        judge.warnings += sentences
        judge.add(
            CheckResult(
                BARRIERS, "warning", " ".join(sentences), {"lines": [s.second_line for s in found[:_SHOWN]]}
            )
        )
    elif "__shared__" in judge.source:
        judge.done(BARRIERS, "no accesses to shared memory are seen that no barrier separates")


def explained_race(judge: Judge, draw: Draw, finding: Finding, limits: DeviceLimits) -> Finding:
    """Return a failure of a draw as the race that racecheck finds behind it, where it finds one."""
    suspicions = suspicions_of(judge.source) if finding.outcome in _FACES else ()
    if not suspicions:
        return finding
    is_small = element_count(judge.problem, draw.workload.sizes) <= _LARGEST_INSTRUMENTED
    again = judge.prepare_draw(draw.workload, limits, draw.expected.inputs) if is_small else None
    if again is not None:
        result, race = run_tool("racecheck", judge.device, judge.source, again.plan, again.payloads)
        judge.add(result)
        if race is not None:
            return Finding(
                race.outcome, f"{race.summary} {finding.summary}", {**finding.evidence, **race.evidence}
            )
    suspicion = str(suspicions[0])
    return Finding(
        finding.outcome, f"{finding.summary} {suspicion}", {**finding.evidence, "suspicion": suspicion}
    )


@dataclass(frozen=True)
class Orders:
    """What `check_orders` will run: draws of a kernel that shares memory, and its delayed copies being compiled.

    Attributes
    ----------
    draws : tuple of Draw
        Ready to run; empty where none is small enough.
    begun : dict
        Order to the compilation of its source.
    """

    draws: tuple[Draw, ...]
    begun: dict[str, Compilation]


def begin_orders(judge: Judge, workloads: Sequence[Workload], limits: DeviceLimits) -> Orders | None:
    """Begin to compile the delayed copies that `check_orders` runs; None where no order could show anything."""
    if judge.device != "cuda" or not shares_memory(judge.source):
        return None
    draws = _draws(judge, workloads, limits)
    kernels = list(dict.fromkeys(k for d in draws for k in d.plan.kernels()))
    begun = {}
    for order in ORDERS if draws else ():
        compilation = judge.aside.begin(delayed_source(judge.source, order), kernels, judge.arch)
        assert compilation is not None, "a GPU's worker compiles aside"
        begun[order] = compilation
    return Orders(tuple(draws), begun)


def check_orders(judge: Judge, orders: Orders | None, limits: DeviceLimits) -> None:
    """Run a few small draws on a GPU with blocks and warps held back in two orders.

    Raises
    ------
    llmkernel.evaluation.trial.Verdict
        At the first draw whose result depends on the order.
    """
    if judge.device != "cuda":
        return
    if orders is None:
        judge.add(CheckResult(THREAD_ORDER, "not_applicable", "no thread sees what another one wrote"))
        return
    draws = orders.draws
    if not draws:
        judge.add(CheckResult(THREAD_ORDER, "not_run", "no draw is small enough to be slowed down"))
        return
    for order, compilation in orders.begun.items():
        reason = _run_in_order(judge, draws, order, compilation)
        if reason:
            judge.add(CheckResult(THREAD_ORDER, "not_run", reason))
            return
    assert judge.session is not None
    for draw in draws:
        options = ExecutionOptions(timeout_seconds=judge.timeout, seed=new_seed() & 0x7FFFFFFF)
        draw.fill(judge.session.draw(draw.plan, draw.payloads, repeats=2, seed=new_seed(), options=options))
        draw.payloads = {}
        judge.inspect_draw(draw, limits)
    judge.done(THREAD_ORDER, f"blocks and warps held back in two orders agree, over {len(draws)} draws")


def _draws(judge: Judge, workloads: Sequence[Workload], limits: DeviceLimits) -> list[Draw]:
    normal = [
        w
        for w in workloads
        if w.family in ("normal", "example") and w.layout == "contiguous" and not w.is_long
    ]
    seen = {tuple(w.sizes.items()): w for w in normal}
    # Sizes first: the reference takes its time over a large draw that is not wanted.
    sized = [(element_count(judge.problem, w.sizes), w) for w in seen.values()]
    small = sorted((c for c in sized if 0 < c[0] <= _LARGEST_ELEMENTS), key=lambda c: c[0], reverse=True)
    draws: list[Draw] = []
    for _, workload in small:
        draw = judge.prepare_draw(workload, limits)
        if draw is not None and draw.plan.launches:
            draws.append(draw)
        if len(draws) == _DRAWS:
            break
    return draws


def _run_in_order(judge: Judge, draws: Sequence[Draw], order: str, compilation: Compilation) -> str:
    """Run the draws in one order; return why that was not possible, or an empty string."""
    try:
        compilation.wait()
        session = compilation.session
        for draw in draws:
            seed = new_seed()
            options = ExecutionOptions(timeout_seconds=judge.timeout, seed=seed & 0x7FFFFFFF)
            result = session.draw(draw.plan, draw.payloads, repeats=2, seed=seed, options=options)
            if result.fault is not None and result.fault.kind == "timeout":
                return "held back, the kernel does not end in time"
            draw.orders[order] = result
    except (CompileError, CandidateError, WorkerLostError):
        return "the compiler does not take the kernel with sleeps in it"
    except LLMKernelError as error:
        return error.what
    return ""
