"""``%kernels profile`` and ``%kernels compare``: kernels of the notebook that are run again to be measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llmkernel.errors import DeviceError, UsageError
from llmkernel.magics.kernel_names import (
    alive,
    find_version,
    label_of,
    record_store,
    require_verified,
    split_name,
)

if TYPE_CHECKING:
    from llmkernel.problem.signature import Signature

_COMPARED = "Kernels are compared on the inputs of one that is in the notebook, against its reference."
_PROFILED = "A kernel is profiled on the example inputs of its cell."


def profile_bundle_of(ipython: Any, text: str) -> dict[str, Any]:
    """Profile the kernel called `text` and return what is shown of it.

    Raises
    ------
    llmkernel.errors.UsageError
        When it is not in the notebook.
    llmkernel.errors.DeviceError
        When the worker was lost.
    """
    name, version = split_name(text)
    if version:
        raise UsageError(
            f"{text} is not in the notebook.",
            rule=_PROFILED,
            next_step=f"%kernels rollback {name} {version} puts it back; then profile {name}.",
        )
    from llmkernel.display.profile import profile_bundle
    from llmkernel.evaluation.profiling import of_resources, profile_problem
    from llmkernel.evaluation.worker.client import WorkerLostError

    kernel = alive(ipython, name)
    if kernel is not None and not kernel.report.is_verified:
        report = kernel.report
        reason = f"No times, bandwidth or counters: {name} is unverified, and they need a reference."
        arch = str(report.compile.get("arch", ""))
        profile = of_resources(report.compile.get("kernels") or {}, arch, reason)
        return profile_bundle(name, kernel.signature, profile)
    kernel = require_verified(ipython, name, _PROFILED)
    try:
        profile = profile_problem(kernel.problem, kernel.source, device=kernel.domain.device)
    except WorkerLostError as lost:
        raise _lost(lost) from None
    return profile_bundle(name, kernel.signature, profile)


def compare_bundle_of(ipython: Any, first: str, second: str) -> dict[str, Any]:
    """Judge two kernels on the same inputs, time them in turn, and return what is shown of them.

    Raises
    ------
    llmkernel.errors.UsageError
        When neither is in the notebook, one is unverified, or they are kernels for different problems.
    llmkernel.errors.RecordError
        When there is no such version.
    llmkernel.errors.DeviceError
        When the worker was lost.
    """
    from llmkernel.display.comparison import comparison_bundle
    from llmkernel.evaluation.comparing import compare_sources, require_same_signature
    from llmkernel.evaluation.worker.client import WorkerLostError

    labels = (label_of(*split_name(first)), label_of(*split_name(second)))
    if labels[0] == labels[1]:
        raise UsageError(
            f"{labels[0]} is one kernel.",
            rule="compare takes two kernels, or two versions of one.",
            next_step=f"Write %kernels compare {labels[0]} {split_name(first)[0]}@1.",
        )
    judge = next((n for n, _ in map(split_name, (first, second)) if _is_verified(ipython, n)), None)
    kernel = require_verified(ipython, judge or split_name(first)[0], _COMPARED)
    sides = [_side(ipython, *split_name(text)) for text in (first, second)]
    require_same_signature(sides[0][0], sides[1][0], labels)
    device = kernel.domain.device
    try:
        found = compare_sources(kernel.problem, (sides[0][1], sides[1][1]), labels, device=device)
    except WorkerLostError as lost:
        raise _lost(lost) from None
    return comparison_bundle(found)


def _is_verified(ipython: Any, name: str) -> bool:
    kernel = alive(ipython, name)
    return kernel is not None and kernel.report.is_verified


def _side(ipython: Any, name: str, version: str) -> tuple[Signature, str]:
    """Return signature and source of one of the two: alive in the notebook, else of a record."""
    from llmkernel.candidate.header import parse_header

    if not version and alive(ipython, name) is not None:
        kernel = require_verified(ipython, name, _COMPARED)
        return kernel.problem.signature, kernel.source
    stored = find_version(record_store(ipython), name, version)
    if stored.record.is_unverified:
        raise UsageError(
            f"{label_of(name, version)} is unverified.",
            rule=_COMPARED,
            next_step=f"%kernels edit {label_of(name, version)} opens its cell: add --from REFERENCE and run it.",
        )
    return parse_header(f"//! {stored.record.problem.signature}\n").signature, stored.source


def _lost(lost: Any) -> DeviceError:
    return DeviceError(
        f"The evaluation worker was lost: {lost.fault.message}",
        rule="kernels are measured in a process of their own; the notebook is untouched",
        next_step="Run the line again; if it happens again, run the kernel's cell, whose report says more.",
    )
