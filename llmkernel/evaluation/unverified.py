"""A candidate without a reference: compiled, and run under every check that needs no right answer.

What comes of it is never ``passed``: at best ``unverified``, because nothing says that the results are right.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from llmkernel.devices.base import DeviceLimits, ExecutionOptions
from llmkernel.errors import LaunchError
from llmkernel.evaluation.binding import Prepared, prepare
from llmkernel.evaluation.checks.faults import outcome_of_fault
from llmkernel.evaluation.checks.repeatable import uses_atomics
from llmkernel.evaluation.draw import Finding
from llmkernel.evaluation.evaluate import DEFAULT_TIMEOUT
from llmkernel.evaluation.feedback import feedback_of
from llmkernel.evaluation.judge_text import one_message
from llmkernel.evaluation.report import CheckResult, Report
from llmkernel.evaluation.session import Session
from llmkernel.evaluation.tools import (
    TOOLS,
    check_emulated,
    chosen_tools,
    explained_fault,
    not_looked_for,
    sanitize,
)
from llmkernel.evaluation.trial import Trial, Verdict
from llmkernel.evaluation.worker.client import WorkerLostError
from llmkernel.evaluation.worker.harness import DrawResult
from llmkernel.problem.arrays import describe
from llmkernel.problem.problem import HostInput
from llmkernel.problem.workloads import new_seed

# Even, so that the last two runs have complementary poison.
REPEATS, LARGE_REPEATS = 8, 2
LARGE_BYTES = 16 << 20
NO_REFERENCE = "There is no reference, so nothing says that the results are right"


def evaluate_unverified(
    source: str,
    inputs: Sequence[HostInput],
    *,
    name: str,
    device: str,
    timeout: float = DEFAULT_TIMEOUT,
    arch: str | None = None,
    checks: Sequence[str] = (),
    on_check: Callable[[CheckResult], None] | None = None,
    on_stage: Callable[[str], None] | None = None,
) -> Report:
    """Compile a candidate and run it on one set of inputs under the memory checks.

    Parameters
    ----------
    source : str
        A `.cu` file under a launch header, which says what is allocated for its results.
    inputs : sequence
        Host arrays and scalars in the order of the header's signature.
    name : str
        Name of the callable.
    device : str
        ``cuda`` or ``cpu``.
    timeout, arch, checks, on_check
        As `llmkernel.evaluate` takes them. Checked mode always runs, on a GPU with memcheck in its place where it does not
        know what the kernel uses.
    on_stage : callable, optional
        Called with ``compile`` and ``memory`` when each begins.

    Returns
    -------
    Report
        Its outcome is ``unverified`` or says what is wrong; never ``passed``, and without timing.

    Raises
    ------
    llmkernel.errors.BindingError
        When the inputs are not what the header takes.
    """
    started = time.perf_counter()
    trial = Trial(source, device, timeout=timeout, arch=arch, on_check=on_check)
    stage = on_stage or (lambda _: None)
    finding: Finding | None = None
    asked = chosen_tools(checks)
    try:
        stage("compile")
        trial.parse()
        limits = trial.open()
        prepared = _prepare(trial, inputs, limits)
        kernels = prepared.plan.kernels() or trial.parse().name_expressions({})
        trial.compile_kernels(list(kernels), limits)
        plural = "s" if len(kernels) != 1 else ""
        trial.done("compile", f"{len(kernels)} kernel{plural} in {trial.compiled['seconds']:.2f} s")
        stage("memory")
        _run(trial, prepared)
        _use_tools(trial, prepared, asked)
        _note_occupancy(trial, prepared)
    except Verdict as verdict:
        finding = verdict.finding
        trial.add(CheckResult(verdict.check, "failed", finding.summary, finding.evidence))
    except WorkerLostError as lost:
        finding = Finding("crashed", f"The evaluation worker was lost: {lost.fault.message}")
    trial.seconds["total"] = time.perf_counter() - started
    return _report(trial, name, inputs, finding)


def memory_finding(result: DrawResult, prepared: Prepared, source: str) -> tuple[str, Finding] | None:
    """Return the check that failed and what it found, or None for a run that stayed within its arrays."""
    if result.guards:
        hit = result.guards[0]
        side = "before its start" if hit["side"] == "before" else "behind its end"
        shape = list(prepared.plan.buffer(hit["buffer"]).shape)
        what = f"`{hit['buffer']}` {shape} was written {side}: element {hit['element']} (flat)."
        return "guard bands", Finding(
            "out_of_bounds",
            what,
            {"argument": hit["buffer"], "element": hit["element"], "shape": shape},
        )
    if result.fault is not None:
        fault = result.fault
        where = f" Where: `{fault.kernel}`." if fault.kernel else ""
        evidence = {"kind": fault.kind, "kernel": fault.kernel, **fault.details}
        return "clean runs", Finding(
            outcome_of_fault(fault), f"{fault.message.rstrip('.')}.{where}", evidence
        )
    if result.mutated:
        hit = result.mutated[0]
        what = (
            f"Input `{hit['buffer']}` was changed: {hit['count']} elements, the first at flat index {hit['element']}. "
            "An array that is changed in place is declared `inout`."
        )
        return "inputs unchanged", Finding("input_mutated", what, {"argument": hit["buffer"]})
    for buffer, hit in result.unwritten.items():
        what = (
            f"{hit['count']} elements of `{buffer}` were never written, the first at flat index {hit['first']}. "
            "An output starts with arbitrary bits, unless it is declared `= 0`."
        )
        return "every element written", Finding("not_written", what, {"result": buffer, **hit})
    return _unrepeatable(result, source)


def _unrepeatable(result: DrawResult, source: str) -> tuple[str, Finding] | None:
    for buffer, hit in result.differs.items():
        evidence = {"result": buffer, "count": hit["count"], "element": hit["first"]}
        if result.depends_on_poison:
            what = (
                f"`{buffer}` depends on memory that nobody wrote: {hit['count']} elements change with what outputs "
                "or scratch held before."
            )
            return "repeatable", Finding("uninitialised_read", what, evidence)
        if not uses_atomics(source):
            what = (
                f"`{buffer}` differs between runs on the same inputs: {hit['count']} elements, the first at flat "
                f"index {hit['first']}. A barrier may be missing."
            )
            return "repeatable", Finding("non_deterministic", what, evidence)
    return None


def _prepare(trial: Trial, inputs: Sequence[HostInput], limits: DeviceLimits) -> Prepared:
    assert trial.candidate is not None
    try:
        return prepare(trial.candidate, inputs, limits)
    except LaunchError as error:
        finding = Finding("launch_failed", one_message(error), {"line": error.line})
        raise Verdict(finding, "launch limits") from None


def _run(trial: Trial, prepared: Prepared) -> None:
    assert trial.session is not None
    mark = time.perf_counter()
    is_large = sum(p.nbytes for p in prepared.payloads.values()) > LARGE_BYTES
    repeats = LARGE_REPEATS if is_large else REPEATS
    result = _draw(trial, trial.session, prepared, repeats)
    if result.fault is not None:
        result.fault = explained_fault(
            result.fault, trial.device, trial.source, prepared.plan, prepared.payloads
        )
    found = memory_finding(result, prepared, trial.source)
    if found is not None:
        raise Verdict(found[1], found[0])
    trial.done("guard bands", "no write in front of or behind any array")
    trial.done("clean runs", f"no illegal address, trap, hang or failed launch in {repeats} runs")
    trial.done("inputs unchanged", "every input that is not `inout` is bit for bit as it was")
    trial.done("every element written", "no element keeps the random pattern that was there before")
    _compare_runs(trial, result, repeats)
    if trial.device == "cpu" and not is_large:
        _compare_orders(trial, trial.session, prepared, result)
    trial.seconds["memory"] = time.perf_counter() - mark


def _draw(
    trial: Trial, session: Session, prepared: Prepared, repeats: int, order: str = "forward"
) -> DrawResult:
    seed = new_seed()
    options = ExecutionOptions(timeout_seconds=trial.timeout, seed=seed & 0x7FFFFFFF, thread_order=order)
    try:
        return session.draw(prepared.plan, prepared.payloads, repeats=repeats, seed=seed, options=options)
    except LaunchError as error:
        finding = Finding("launch_failed", one_message(error), {"line": error.line})
        raise Verdict(finding, "launch limits") from None


def _compare_runs(trial: Trial, result: DrawResult, repeats: int) -> None:
    if not result.differs:
        trial.done("repeatable", f"{repeats} runs agree bit for bit")
        return
    # Without a tolerance nobody can say whether rounding in another order explains it.
    what = "Runs on the same inputs differ, and the kernel uses atomics: their order is not fixed."
    trial.warnings.append(what)
    trial.add(CheckResult("repeatable", "warning", what))


def _compare_orders(trial: Trial, session: Session, prepared: Prepared, forward: DrawResult) -> None:
    name, differ = "thread order", []
    for order in ("reverse", "random"):
        other = _draw(trial, session, prepared, 1, order)
        found = memory_finding(other, prepared, trial.source)
        if found is not None:
            finding = found[1]
            what = f"{finding.summary.rstrip('.')}. In {order} thread order."
            raise Verdict(Finding(finding.outcome, what, {**finding.evidence, "order": order}), name)
        before, after = _payloads(prepared, forward), _payloads(prepared, other)
        differ += [(order, b) for b in before if before[b].tobytes() != after[b].tobytes()]
    if not differ:
        trial.done(name, "forward, reverse and random thread orders agree")
        return
    order, buffer = differ[0]
    what = f"`{buffer}` depends on the order in which threads run ({order} order gives another result)."
    if not uses_atomics(trial.source):
        what += " A barrier is missing, or blocks depend on each other."
        raise Verdict(Finding("data_race", what, {"order": order, "result": buffer}), name)
    trial.warnings.append(what)
    trial.add(CheckResult(name, "warning", what))


def _payloads(prepared: Prepared, result: DrawResult) -> dict[str, Any]:
    return dict(zip(prepared.plan.results, result.results, strict=True)) | result.finals


def _use_tools(trial: Trial, prepared: Prepared, asked: Sequence[str]) -> None:
    """Look inside one run in checked mode; on a GPU also by what is asked for, and by memcheck where that knows nothing."""
    _take(trial, check_emulated(TOOLS, trial.source, prepared.plan, prepared.payloads))
    if trial.device == "cpu":
        return
    is_known = any(trial.checks[name].status == "passed" for name in trial.checks if "checked mode" in name)
    for tool in asked or (() if is_known else ("memcheck",)):
        _take(trial, [sanitize(tool, trial.source, prepared.plan, prepared.payloads)])


def _take(trial: Trial, results: Sequence[tuple[CheckResult, Finding | None]]) -> None:
    for result, finding in results:
        if finding is not None:
            raise Verdict(finding, result.name)
        trial.add(result)


def _note_occupancy(trial: Trial, prepared: Prepared) -> None:
    assert trial.session is not None
    for kernel, fraction in trial.session.occupancy(prepared.plan).items():
        if kernel in trial.compiled["kernels"]:
            trial.compiled["kernels"][kernel]["occupancy"] = fraction


def _report(trial: Trial, name: str, inputs: Sequence[HostInput], finding: Finding | None) -> Report:
    device: dict[str, Any] = {"device": trial.device}
    if trial.session is not None:
        device |= {**trial.session.limits().to_dict(), "versions": trial.session.versions()}
        device["sandbox"] = ", ".join(trial.session.sandbox()["parts"]) or "none"
    headline = (
        f"Unverified: it compiled and stayed within its arrays on the inputs of the cell. {NO_REFERENCE}."
    )
    return Report(
        outcome="unverified" if finding is None else finding.outcome,
        headline=headline if finding is None else finding.summary,
        name=name,
        signature=str(trial.candidate.signature) if trial.candidate is not None else "",
        device=device,
        level="memory",
        is_verified=False,
        checks=tuple(trial.checks.values()),
        compile=trial.compiled,
        fault=finding.evidence if finding is not None and "kind" in finding.evidence else {},
        feedback="" if finding is None else feedback_of(finding),
        not_checked=tuple(_not_checked(trial, inputs)),
        warnings=tuple(trial.warnings),
        seconds=trial.seconds,
    )


def _not_checked(trial: Trial, inputs: Sequence[HostInput]) -> list[str]:
    assert trial.candidate is None or len(inputs) == len(trial.candidate.signature.inputs)
    out = [f"The results: {NO_REFERENCE[0].lower()}{NO_REFERENCE[1:]}."]
    if trial.candidate is not None:
        pairs = zip(trial.candidate.signature.inputs, inputs, strict=True)
        given = ", ".join(f"{spec.name}: {describe(value)}" for spec, value in pairs)
        out.append(f"Other sizes, dtypes, layouts and values than these: {given or 'it takes no inputs'}.")
    out.append("Speed: times stand only beside a kernel that passed against a reference.")
    if trial.device == "cpu":
        out.append("Nothing ran on a GPU: the kernel was compiled for the host and emulated.")
    out += not_looked_for(trial.checks.values())
    if trial.session is not None:
        out += trial.session.sandbox()["missing"]
    return out
