"""A kernel that a person wrote without a reference: checked for what needs none, and kept as what it is."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from llmkernel import __version__
from llmkernel.candidate.candidate import parse_candidate
from llmkernel.errors import NotAcceptedError, RecordError
from llmkernel.evaluation.evaluate import choose_device
from llmkernel.evaluation.settings import check_settings
from llmkernel.evaluation.unverified import evaluate_unverified
from llmkernel.problem.arrays import is_array, kind_of, to_numpy
from llmkernel.problem.dtypes import dtype_name
from llmkernel.records.record import Record, RecordedProblem, source_digest, utc_now
from llmkernel.records.store import RecordStore
from llmkernel.synthesis.devices import environment_of
from llmkernel.synthesis.events import (
    Attempt,
    AttemptFinished,
    CheckFinished,
    GaveUp,
    StageStarted,
    SynthesisEvent,
)
from llmkernel.synthesis.source import BY_HAND
from llmkernel.synthesis.unverified_kernel import UnverifiedKernel, check_argument

# What a record says in the place of an intent.
UNVERIFIED = "unverified: written by hand, without a reference"


def accept_unverified(
    source: str,
    *,
    inputs: Mapping[str, Any],
    name: str,
    device: str = "auto",
    arch: str | None = None,
    checks: Sequence[str] = (),
    records_dir: str | Path | None = None,
    on_event: Callable[[SynthesisEvent], None] | None = None,
) -> UnverifiedKernel:
    """Compile `source`, run it under the memory checks, and return it as an unverified kernel.

    Parameters
    ----------
    source : str
        A `.cu` file under a launch header.
    inputs : mapping
        Example arguments by the header's names.
    name : str
        Name of the kernel.
    device, arch, checks, records_dir, on_event
        As `llmkernel.synthesize` takes them.

    Raises
    ------
    llmkernel.errors.BindingError
        When the inputs are not what the header takes.
    llmkernel.errors.DeviceUnavailableError
        When no device can run kernels here.
    llmkernel.errors.NotAcceptedError
        When it does not compile or left its arrays; carries the attempt with its report.
    """
    emit = on_event or (lambda _: None)
    check_settings(arch=arch)
    chosen = choose_device(device)
    for key, value in inputs.items():
        check_argument(key, value)
    started = time.perf_counter()
    report = evaluate_unverified(
        source,
        [to_numpy(v) if is_array(v) else v for v in inputs.values()],
        name=name,
        device=chosen,
        arch=arch,
        checks=checks,
        on_check=lambda check: emit(CheckFinished(check)),
        on_stage=lambda stage: emit(StageStarted(stage)),
    )
    seconds = {"evaluation": time.perf_counter() - started}
    attempt = Attempt(1, "", source=source, report=report, seconds=seconds)
    emit(AttemptFinished(attempt))
    if report.outcome != "unverified":
        emit(GaveUp(report.headline, (attempt,)))
        raise NotAcceptedError(
            f"{name} was not taken: {report.outcome}.",
            attempts=(attempt,),
            rule="a kernel without a reference can be called once it compiled and passed the memory checks",
            received=report.headline,
            next_step="Correct the cell; its report says where.",
        )
    kernel = UnverifiedKernel(parse_candidate(source), report, name, chosen)
    if records_dir is not None:
        warning = _save(RecordStore(records_dir), kernel, inputs)
        if warning is not None:
            kernel.report = replace(report, warnings=(*report.warnings, warning))
    return kernel


def _save(store: RecordStore, kernel: UnverifiedKernel, inputs: Mapping[str, Any]) -> str | None:
    """Keep the kernel as what it is; returns a warning when it cannot be written."""
    examples = []
    for name, value in inputs.items():
        shape = list(value.shape) if is_array(value) else []
        dtype = dtype_name(value.dtype) if is_array(value) else type(value).__name__
        examples.append({"name": name, "kind": kind_of(value), "dtype": dtype, "shape": shape})
    try:
        kernel.record = Record(
            name=kernel.__name__,
            problem=RecordedProblem(UNVERIFIED, "", "", kernel.signature, tuple(examples)),
            candidate_digest=source_digest(kernel.source),
            created=utc_now(),
            environment=environment_of(kernel.report.device["device"]),
            report=kernel.report.to_dict(),
            provider=BY_HAND,
            package_version=__version__,
        )
        store.save(kernel.record, kernel.source)
    except RecordError as error:
        return f"The record was not saved: {error.what} {error.next_step or ''}".strip()
    return None
