"""Replay: the accepted kernel of an earlier run, verified here, without a provider."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from llmkernel import __version__
from llmkernel.candidate.candidate import parse_candidate
from llmkernel.errors import LLMKernelError, NotAcceptedError, RecordError
from llmkernel.evaluation.evaluate import evaluate_problem
from llmkernel.evaluation.report import Report
from llmkernel.problem.arrays import is_array, kind_of
from llmkernel.problem.dtypes import dtype_name
from llmkernel.problem.problem import Problem
from llmkernel.prompts.redaction import find_secrets, redact, redact_all
from llmkernel.records.fingerprint import fingerprint
from llmkernel.records.notebook import restore_from_notebook
from llmkernel.records.record import Record, RecordedProblem, source_digest, utc_now
from llmkernel.records.store import RecordStore, StoredRecord
from llmkernel.records.transcript import transcript_lines
from llmkernel.synthesis.devices import environment_of
from llmkernel.synthesis.events import Accepted, CheckFinished, SamplesTaken, StageStarted, SynthesisEvent
from llmkernel.synthesis.generated_kernel import GeneratedKernel
from llmkernel.synthesis.loop import LoopOptions, LoopResult

HEADER_VERSION = 1


def recorded_problem(problem: Problem) -> RecordedProblem:
    """Return what a record keeps of a problem; its key finds the record again."""
    mark = fingerprint(problem.reference)
    examples = []
    for spec, value in zip(problem.signature.inputs, problem.inputs, strict=True):
        shape = list(value.shape) if is_array(value) else []
        dtype = dtype_name(value.dtype) if is_array(value) else spec.dtype
        examples.append({"name": spec.name, "kind": kind_of(value), "dtype": dtype, "shape": shape})
    return RecordedProblem(
        # Redacted before the key is made of it: what is saved finds itself again.
        intent=redact(problem.intent),
        reference=redact(problem.reference.source) or mark.text,
        reference_fingerprint=mark.digest,
        signature=str(problem.signature),
        examples=tuple(examples),
        header_version=HEADER_VERSION,
    )


def find_record(
    store: RecordStore,
    key: str,
    problem: Problem,
    *,
    provider: str | None,
    model: str | None,
    notebook: Path | None,
) -> StoredRecord | None:
    """Return the record of a problem, from its folder or restored from the notebook's own outputs.

    A record of another provider or model than the one that was named explicitly is a miss.
    """
    stored = store.find(key, name=problem.name)
    if stored is None and notebook is not None:
        stored = restore_from_notebook(notebook, key, store)
    if stored is None:
        return None
    if provider is not None and stored.record.provider != provider:
        return None
    if model is not None and stored.record.model != model:
        return None
    return stored


def replay(
    store: RecordStore,
    stored: StoredRecord,
    problem: Problem,
    device: str,
    options: LoopOptions,
    emit: Callable[[SynthesisEvent], None],
) -> GeneratedKernel:
    """Return the kernel of a record; it is verified first unless this machine did that already.

    Raises
    ------
    llmkernel.errors.NotAcceptedError
        When the recorded candidate does not pass here.
    """
    environment = environment_of(device)
    reason = store.reason_to_verify(stored, environment)
    if reason is None:
        emit(StageStarted("replay", "verified on this machine before"))
        report = stored.record.read_report()
    else:
        emit(StageStarted("replay", reason))
        report = evaluate_problem(
            problem,
            stored.source,
            device=device,
            level="full",
            timeout=options.timeout,
            arch=options.arch,
            baselines=options.baselines,
            checks=options.checks,
            on_check=lambda c: emit(CheckFinished(c)),
            on_stage=lambda s: emit(StageStarted(s)),
            on_samples=lambda rows: emit(SamplesTaken(rows)),
        )
        report = replace(report, warnings=(*report.warnings, f"Replayed and verified again: {reason}"))
        if not report.is_passed:
            raise NotAcceptedError(
                f"The recorded kernel of {problem.name} does not pass here: {report.outcome}.",
                rule="a record is a claim until it is verified on this machine",
                received=report.headline,
                next_step="Run the cell with --replay never to generate another kernel.",
            )
        if not stored.is_edited:
            store.mark_verified(stored, environment)
    kernel = GeneratedKernel(problem, parse_candidate(stored.source), report, device)
    kernel.record = stored.record
    if stored.is_edited:
        kernel.record = replace(
            stored.record,
            candidate_digest=source_digest(stored.source),
            report=redact_all(report.to_dict()),
            environment=environment,
            provider="edited by hand",
            model="",
            created=utc_now(),
        )
        _save(store, kernel.record, stored.source, store.transcript(stored), report)
    emit(
        Accepted(
            report, "replayed", details={"provider": stored.record.provider, "model": stored.record.model}
        )
    )
    return kernel


def save(
    store: RecordStore,
    problem: Problem,
    kernel: GeneratedKernel,
    result: LoopResult,
    *,
    provider: str,
    system: str,
    device: str,
) -> str | None:
    """Keep an accepted kernel; returns a warning when it cannot be written, for the kernel itself is not lost."""
    secrets = find_secrets(kernel.source)
    if secrets:
        return (
            f"The record was not saved: line {secrets[0].line} of the kernel holds what looks like a secret "
            f"({secrets[0].kind}). Take it out of the source."
        )
    reply = result.accepted.reply
    try:
        kernel.record = Record(
            name=problem.name,
            problem=recorded_problem(problem),
            candidate_digest=source_digest(kernel.source),
            created=utc_now(),
            environment=environment_of(device),
            report=redact_all(kernel.report.to_dict()),
            domain=kernel.domain.to_dict(),
            provider=provider,
            model=reply.model if reply is not None else "",
            usage=result.usage.to_dict(),
            cost_usd=result.cost_usd,
            attempts=len(result.attempts),
            package_version=__version__,
        )
        store.save(
            kernel.record,
            kernel.source,
            transcript_lines(result.attempts, system=system),
            is_verified_here=True,
        )
    except RecordError as error:
        return f"The record was not saved: {error.what} {error.next_step or ''}".strip()
    return None


def _save(store: RecordStore, record: Record, source: str, transcript: str, report: Report) -> None:
    try:
        store.save(record, source, transcript, is_verified_here=report.is_passed)
    except LLMKernelError:
        return
