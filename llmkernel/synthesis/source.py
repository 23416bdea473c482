"""`accept_source`: a `.cu` file written by hand becomes a kernel, through the same checks as a reply."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from llmkernel.candidate.candidate import parse_candidate
from llmkernel.candidate.parameters import parse_kernels
from llmkernel.errors import CandidateError, NotAcceptedError
from llmkernel.evaluation.evaluate import choose_device, evaluate_problem
from llmkernel.evaluation.settings import check_settings
from llmkernel.providers.base import Usage
from llmkernel.records.store import RecordStore
from llmkernel.synthesis.events import (
    Accepted,
    Attempt,
    AttemptFinished,
    CheckFinished,
    GaveUp,
    SamplesTaken,
    StageStarted,
    SynthesisEvent,
)
from llmkernel.synthesis.generated_kernel import GeneratedKernel
from llmkernel.synthesis.loop import LoopResult
from llmkernel.synthesis.replay import save
from llmkernel.synthesis.synthesize import problem_of

# What a record says in the place of a provider and of an intent.
BY_HAND = "by hand"


def accept_source(
    source: str,
    reference: Callable[..., Any],
    *,
    inputs: Mapping[str, Any],
    name: str,
    device: str = "auto",
    arch: str | None = None,
    tolerance: float | None = None,
    shapes: tuple[Mapping[str, int], ...] | None = None,
    baselines: Mapping[str, Callable[..., Any]] | None = None,
    checks: Sequence[str] = (),
    records_dir: str | Path | None = None,
    on_event: Callable[[SynthesisEvent], None] | None = None,
) -> GeneratedKernel:
    """Judge `source` in full and return it as a verified kernel.

    Parameters
    ----------
    source : str
        A `.cu` file under a launch header.
    reference : callable
        What it must compute.
    inputs : mapping
        Example arguments by parameter name.
    name : str
        Name of the kernel.
    device, arch, tolerance, shapes, baselines, checks, records_dir, on_event
        As `llmkernel.synthesize` takes them.

    Raises
    ------
    llmkernel.errors.ReferenceProblem
        When reference and inputs do not define a problem.
    llmkernel.errors.DeviceUnavailableError
        When no device can run kernels here.
    llmkernel.errors.NotAcceptedError
        When it does not pass; carries the attempt with its report.
    """
    emit = on_event or (lambda _: None)
    check_settings(tolerance=tolerance, arch=arch)
    chosen = choose_device(device)
    problem = problem_of(reference, BY_HAND, inputs, name, tolerance, shapes)
    started = time.perf_counter()
    report = evaluate_problem(
        problem,
        source,
        device=chosen,
        level="full",
        arch=arch,
        baselines=dict(baselines or {}),
        checks=checks,
        on_check=lambda check: emit(CheckFinished(check)),
        on_stage=lambda stage: emit(StageStarted(stage)),
        on_samples=lambda rows: emit(SamplesTaken(rows)),
    )
    attempt = Attempt(
        1, "", source=source, report=report, seconds={"evaluation": time.perf_counter() - started}
    )
    emit(AttemptFinished(attempt))
    if not report.is_passed:
        emit(GaveUp(report.headline, (attempt,)))
        raise NotAcceptedError(
            f"{name} was not accepted: {report.outcome}.",
            attempts=(attempt,),
            rule="a kernel is accepted once it passed every check",
            received=report.headline,
            next_step=_next_step(source, report.signature),
        )
    kernel = GeneratedKernel(problem, parse_candidate(source), report, chosen)
    if records_dir is not None:
        result = LoopResult(attempt, (attempt,), Usage(), None)
        warning = save(
            RecordStore(records_dir), problem, kernel, result, provider=BY_HAND, system="", device=chosen
        )
        if warning is not None:
            kernel.report = replace(report, warnings=(*report.warnings, warning))
    emit(Accepted(kernel.report, BY_HAND))
    return kernel


def _next_step(source: str, signature: str) -> str:
    """Say what to do about a source that was not accepted; one without a launch header is shown how its begins."""
    if signature and not any(line.lstrip().startswith("//!") for line in source.split("\n")):
        try:
            kernels = [kernel.name for kernel in parse_kernels(source)]
        except CandidateError:
            kernels = []
        launch = f"{kernels[0] if kernels else 'a_kernel'}<<<grid, block>>>(…)"
        return f"Begin the source with `//! {signature}`, then `//! {launch}`; `%%cuda?` shows a whole cell."
    return "Correct the cell; its report says where."
