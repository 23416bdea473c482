"""Two candidates for one problem: both judged on the same inputs, then timed in turn in one run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from llmkernel.errors import UsageError
from llmkernel.evaluation.evaluate import evaluate_problem
from llmkernel.evaluation.report import Measurement, Report
from llmkernel.evaluation.statistics import measurement, ratio_interval, relative_error_of_median
from llmkernel.evaluation.timed import TimedKernel
from llmkernel.evaluation.timing import (
    FASTER,
    LEAST_TURNS,
    RELATIVE_ERROR,
    SECONDS,
    draws_for_timing,
)
from llmkernel.evaluation.worker.client import POOL, Worker, WorkerPool
from llmkernel.problem.problem import Problem
from llmkernel.problem.signature import ArraySpec, Signature

SECOND = WorkerPool()
EMULATED_TURNS = 2


@dataclass(frozen=True)
class Comparison:
    """Two kernels side by side.

    Attributes
    ----------
    labels : tuple of str
    reports : tuple of Report
        Of the check that both passed before they were timed.
    rows : tuple of Measurement
        The second one's `ratio` is its time over the first one's: above 1 means that the first is faster.
    resources : tuple of dict
        Registers, spills and occupancy by kernel.
    is_emulation : bool
        Timed on the `cpu` device: no ratio is given.
    claim : str
        The one sentence that may be said.
    """

    labels: tuple[str, str]
    reports: tuple[Report, Report]
    rows: tuple[Measurement, Measurement]
    resources: tuple[dict[str, Any], dict[str, Any]]
    is_emulation: bool
    claim: str


def compare_sources(
    problem: Problem,
    sources: tuple[str, str],
    labels: tuple[str, str],
    *,
    device: str,
    on_stage: Callable[[str], None] | None = None,
) -> Comparison:
    """Judge two candidates on one problem's inputs and time them in turn, A B B A.

    Parameters
    ----------
    problem : Problem
        Its reference judges both.
    sources, labels : tuple of str
    device : str
        ``cuda`` or ``cpu``.
    on_stage : callable, optional
        Called with the label that is judged next, then with ``timing``.

    Raises
    ------
    llmkernel.errors.UsageError
        When one of them does not pass: only right kernels are compared.
    """
    stage = on_stage or (lambda _: None)
    reports = []
    for source, label in zip(sources, labels, strict=True):
        stage(label)
        reports.append(evaluate_problem(problem, source, device=device, level="quick", with_timing=False))
        _require_passed(reports[-1], label)
    stage("timing")
    draws = draws_for_timing(problem, device)
    is_emulation = device == "cpu"
    # A process each: neither can see what the other computes.
    with (
        _second_worker(device) as other,
        TimedKernel(POOL.get(device), sources[0], draws) as first,
        TimedKernel(other, sources[1], draws) as second,
    ):
        _require_launches(first, second)
        rows = _in_turn(first, second, labels, is_emulation=is_emulation)
        for timed, label in zip((first, second), labels, strict=True):
            finding = timed.check(problem)
            if finding is not None:
                raise _refused(label, finding.outcome, finding.summary)
        resources = (first.resources_with_occupancy(), second.resources_with_occupancy())
    claim = "Emulated on the CPU: this says nothing about speed on a GPU." if is_emulation else _claim(rows)
    return Comparison(labels, (reports[0], reports[1]), rows, resources, is_emulation, claim)


@contextmanager
def _second_worker(device: str) -> Iterator[Worker]:
    """Yield a worker beside the usual one; it goes with its memory as soon as nothing is compared any more."""
    try:
        yield SECOND.get(device)
    finally:
        SECOND.close()


def require_same_signature(first: Signature, second: Signature, labels: Sequence[str]) -> None:
    """Refuse to compare kernels that take or return different things; names do not count.

    Raises
    ------
    llmkernel.errors.UsageError
    """
    if _form(first) != _form(second):
        raise UsageError(
            f"{labels[0]} and {labels[1]} are kernels for different problems.",
            rule="Kernels are compared on the same inputs: number, dtypes and shapes of inputs and results are equal.",
            received=f"{first} and {second}",
            next_step="Compare two kernels for one reference, or two versions of one kernel: NAME NAME@1.",
        )


def _form(signature: Signature) -> list[tuple[Any, ...]]:
    """Return what a signature is without its names: dimensions are numbered as they appear."""
    numbers: dict[str, str] = {}

    def numbered(spec: ArraySpec) -> tuple[str, ...]:
        for dim in spec.dims:
            for name in sorted(dim.names):
                numbers.setdefault(name, f"#{len(numbers)}")
        return tuple(
            numbers.get(str(dim)) or f"{dim} of {sorted(numbers[n] for n in dim.names)}" for dim in spec.dims
        )

    form: list[tuple[Any, ...]] = []
    for spec in signature.inputs:
        if isinstance(spec, ArraySpec):
            form.append(("input", spec.dtype, spec.is_inout, numbered(spec)))
        else:
            form.append(("scalar", spec.dtype))
    form += [("output", spec.dtype, numbered(spec)) for spec in signature.outputs]
    return form


def _require_passed(report: Report, label: str) -> None:
    if not report.is_passed:
        raise _refused(label, report.outcome, report.headline)


def _refused(label: str, outcome: str, headline: str) -> UsageError:
    return UsageError(
        f"{label} is not compared: it ended `{outcome}` on these inputs.",
        rule="Only kernels that pass against the same reference are timed beside each other.",
        received=headline,
        next_step="Correct it, or compare another version.",
    )


def _require_launches(*timed: TimedKernel) -> None:
    if not all(t.plan.launches for t in timed):
        raise UsageError(
            "There is nothing to time.",
            rule="A kernel is timed at the sizes of its example, and launches nothing for empty arrays.",
            next_step="Run its cell with arrays that are not empty.",
        )


def _in_turn(
    first: TimedKernel, second: TimedKernel, labels: tuple[str, str], *, is_emulation: bool
) -> tuple[Measurement, Measurement]:
    first.turn()  # warm-up: lazy loading and clocks
    second.turn()
    mine: list[float] = []
    theirs: list[float] = []
    pairs: list[float] = []
    started = time.monotonic()
    least = EMULATED_TURNS if is_emulation else LEAST_TURNS
    while len(pairs) < least or (
        not is_emulation
        and max(map(relative_error_of_median, (mine, theirs))) > RELATIVE_ERROR
        and time.monotonic() - started < SECONDS
    ):
        a1, b1, b2, a2 = first.turn(), second.turn(), second.turn(), first.turn()
        mine += a1 + a2
        theirs += b1 + b2
        pairs += [float(np.median(b1) / np.median(a1)), float(np.median(b2) / np.median(a2))]
    rows = measurement(labels[0], mine), measurement(labels[1], theirs)
    if is_emulation:
        return rows
    ratio, low, high = ratio_interval(pairs)
    return rows[0], replace(rows[1], ratio=ratio, ratio_low=low, ratio_high=high)


def _claim(rows: tuple[Measurement, Measurement]) -> str:
    first, second = rows
    ratio, low, high = second.ratio, second.ratio_low, second.ratio_high
    assert ratio is not None
    assert low is not None
    assert high is not None
    if low > 1 and ratio > FASTER:
        interval = f"95 % interval {low:.2f}–{high:.2f}"
        return f"{first.label} is {ratio:.2f} × as fast as {second.label} ({interval})."
    if high < 1 and ratio < 1 / FASTER:
        interval = f"95 % interval {1 / high:.2f}–{1 / low:.2f}"
        return f"{second.label} is {1 / ratio:.2f} × as fast as {first.label} ({interval})."
    return (
        f"{first.label} and {second.label} are on a par: {ratio:.2f} × (95 % interval {low:.2f}–{high:.2f})."
    )
