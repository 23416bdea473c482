"""`evaluate`: judge any candidate text against a reference, without a provider."""

from __future__ import annotations

import math
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

from llmkernel.candidate.arguments import ArrayArgument, CallArgument, ScalarValue
from llmkernel.candidate.candidate import parse_candidate
from llmkernel.candidate.header import parse_header
from llmkernel.errors import DeviceUnavailableError, LLMKernelError, UsageError
from llmkernel.evaluation.draw import Finding
from llmkernel.evaluation.feedback import feedback_of
from llmkernel.evaluation.judge import Judge, quick_and_full
from llmkernel.evaluation.races import begin_orders, check_orders, note_suspicions
from llmkernel.evaluation.report import CheckResult, Measurement, Report, Timing
from llmkernel.evaluation.settings import check_settings
from llmkernel.evaluation.state import check_state
from llmkernel.evaluation.tool_runs import begin_tools
from llmkernel.evaluation.tools import chosen_tools, not_looked_for
from llmkernel.evaluation.trial import Verdict
from llmkernel.evaluation.worker.client import WorkerLostError
from llmkernel.problem.arrays import describe, is_array
from llmkernel.problem.dtypes import DTYPES, dtype_name
from llmkernel.problem.problem import Problem, make_problem
from llmkernel.problem.reference import make_reference
from llmkernel.problem.signature import ArraySpec, Signature
from llmkernel.prompts.redaction import redact

Level = Literal["quick", "full"]
DEFAULT_TIMEOUT = 20.0
# Threads that judge at the same time would share one worker, and slow down what the other is timing.
_TURN = threading.RLock()


def choose_device(device: str = "auto") -> str:
    """Return ``cuda`` or ``cpu``.

    Parameters
    ----------
    device : str
        ``auto`` takes the GPU where there is one.

    Raises
    ------
    llmkernel.errors.DeviceUnavailableError
        With the reason and the next step.
    """
    from llmkernel.devices.base import available_devices

    devices = available_devices()
    if device not in (*devices, "auto"):
        raise UsageError(
            f"There is no device {device!r}.",
            rule="devices are auto, " + ", ".join(devices),
            received=device,
            next_step="Leave the option out to take the GPU where there is one.",
        )
    reasons = {}
    for name, kind in devices.items():
        if device in ("auto", name):
            reason = kind.unavailable_reason()
            if reason is None:
                return name
            reasons[name] = reason
    raise DeviceUnavailableError(
        "No device can run kernels here."
        if device == "auto"
        else f"The device {device!r} cannot be used here.",
        rule="a candidate is run before it is believed",
        received="; ".join(f"{k}: {v}" for k, v in reasons.items()),
        next_step="Run `llmkernel doctor` for what is missing.",
    )


def evaluate(
    source: str,
    reference: Callable[..., Any],
    inputs: Sequence[Any],
    *,
    signature: Signature | str | None = None,
    device: str = "auto",
    level: Level = "quick",
    tolerance: float | None = None,
    timeout: float = DEFAULT_TIMEOUT,
    arch: str | None = None,
    with_timing: bool = False,
    checks: Sequence[str] = (),
    on_check: Callable[[CheckResult], None] | None = None,
) -> Report:
    """Judge a candidate.

    Parameters
    ----------
    source : str
        A `.cu` file under a launch header; any text is answered with a report.
    reference : callable
        Called with `inputs` positionally.
    inputs : sequence
        Arrays (NumPy, CuPy, torch) and scalars in the order of the header's signature.
    signature : Signature or str, optional
        The contract's symbolic shapes; default: the header's own where it fits the inputs.
    device : str
        ``auto``, ``cuda`` or ``cpu``.
    level : str
        ``quick``: the user's inputs and one odd size. ``full``: all sizes, value families and controls.
    tolerance : float, optional
        Relative tolerance in place of the derived one; the report says so.
    timeout : float
        Seconds that one execution may take.
    arch : str, optional
        Architecture to compile for; default: the device's own.
    with_timing : bool
        Time a candidate that passes.
    checks : sequence of str
        Tools to run besides: ``memcheck``, ``initcheck``, ``racecheck``, ``synccheck`` or ``all``. On a GPU they are
        compute-sanitizer's, about two seconds each; on the `cpu` device checked mode answers for them. A full
        verification runs checked mode anyway, beside a GPU's draws too, and memcheck where it cannot.
    on_check : callable, optional
        Called with every `CheckResult` as it is found.

    Returns
    -------
    Report
        Whatever the source contains.

    Raises
    ------
    llmkernel.errors.ReferenceProblem
        When reference and inputs do not define a problem.
    llmkernel.errors.DeviceUnavailableError
        When no device can run kernels here.
    """
    if level not in ("quick", "full"):
        raise UsageError(
            f"There is no level {level!r}.",
            rule="levels are quick and full",
            received=str(level),
            next_step="Use full.",
        )
    check_settings(timeout=timeout, tolerance=tolerance, arch=arch)
    if is_array(inputs) or isinstance(inputs, str | bytes) or not isinstance(inputs, Iterable):
        raise UsageError(
            "The inputs are not a list of inputs.",
            rule="inputs is a list or tuple, one value for each parameter of the reference, in order",
            received=describe(inputs),
            next_step="Write inputs=[x] where there is one input.",
        )
    made, values = make_reference(reference, list(inputs))
    problem = make_problem(made, values, tolerance=tolerance)
    given: Any = source
    text = given.decode(errors="replace") if isinstance(given, bytes) else str(given)
    text = text.removeprefix("\ufeff")
    adopt_signature(problem, _signature_of(signature, text))
    return evaluate_problem(
        problem,
        text,
        device=choose_device(device),
        level=level,
        timeout=timeout,
        arch=arch,
        with_timing=with_timing,
        checks=checks,
        on_check=on_check,
    )


def evaluate_problem(
    problem: Problem,
    source: str,
    *,
    device: str,
    level: Level = "full",
    timeout: float = DEFAULT_TIMEOUT,
    arch: str | None = None,
    with_timing: bool = True,
    baselines: dict[str, Callable[..., Any]] | None = None,
    checks: Sequence[str] = (),
    on_check: Callable[[CheckResult], None] | None = None,
    on_stage: Callable[[str], None] | None = None,
    on_samples: Callable[[tuple[Measurement, ...]], None] | None = None,
) -> Report:
    """Judge a candidate against a problem; see `evaluate`.

    Parameters
    ----------
    baselines : dict, optional
        Further callables to time, by label.
    checks : sequence of str
        See `evaluate`.
    on_stage : callable, optional
        Called with ``compile``, ``quick``, ``full``, ``timing`` when each begins.
    on_samples : callable, optional
        Called with the rows of the timing table while samples arrive, a few times a second.
    """
    started = time.perf_counter()
    judge = Judge(problem, source, device, timeout=timeout, arch=arch, on_check=on_check)
    stage = on_stage or (lambda _: None)
    timing: Timing | None = None
    try:
        finding, timing = _judge_in_turn(
            judge,
            problem,
            level,
            stage,
            with_timing=with_timing,
            baselines=baselines or {},
            tools=chosen_tools(checks),
            on_samples=on_samples,
        )
    except Verdict as verdict:
        finding = verdict.finding
        judge.add(CheckResult(verdict.check, "failed", finding.summary, finding.evidence))
    except WorkerLostError as lost:
        finding = Finding(
            "inconclusive" if lost.is_interference else "crashed",
            f"The evaluation worker was lost: {lost.fault.message}",
            dict(lost.fault.details),
        )
    except LLMKernelError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever a candidate made us stumble over, it gets a report
        what = (
            f"The judge itself failed: {type(error).__name__}: {str(error)[:300]}. This is a bug of LLM-CUDA."
        )
        finding = Finding("inconclusive", what, {"traceback": traceback.format_exc()[-4000:]})
    finally:
        judge.close()
    judge.seconds["total"] = time.perf_counter() - started
    return _report(judge, problem, level, finding, timing)


def _judge_in_turn(*arguments: Any, **options: Any) -> tuple[Finding | None, Timing | None]:
    with _TURN:
        return _judge(*arguments, **options)


def _judge(
    judge: Judge,
    problem: Problem,
    level: Level,
    stage: Callable[[str], None],
    *,
    with_timing: bool,
    baselines: dict[str, Callable[..., Any]],
    tools: Sequence[str],
    on_samples: Callable[[tuple[Measurement, ...]], None] | None,
) -> tuple[Finding | None, Timing | None]:
    stage("compile")
    judge.parse()
    note_suspicions(judge)
    limits = judge.open()
    quick, rest = quick_and_full(problem, level)
    taken = judge.compile([*quick, *rest], limits, first=quick)
    mark = time.perf_counter()
    stage("quick")
    judge.execute([w for w in taken if w in quick], limits, is_full=False)
    judge.seconds["quick"] = time.perf_counter() - mark
    judge.use_whole_module(limits)
    judge.note_occupancy()
    if rest:
        mark = time.perf_counter()
        stage("full")
        orders = begin_orders(judge, taken, limits)
        runs = begin_tools(judge, tools, taken, quick, limits, is_full=True)
        judge.execute([w for w in taken if w not in quick], limits, is_full=True)
        check_state(judge, taken, limits)
        check_orders(judge, orders, limits)
        judge.seconds["full"] = time.perf_counter() - mark
    else:
        runs = begin_tools(judge, tools, taken, quick, limits, is_full=False)
    mark = time.perf_counter()
    runs.finish()
    judge.seconds["tools"] = time.perf_counter() - mark
    judge.finish_checks()
    if not with_timing:
        return None, None
    from llmkernel.evaluation.timing import time_candidate

    mark = time.perf_counter()
    stage("timing")
    assert judge.session is not None
    finding, timing = judge.session.forgiving_kills(
        lambda: time_candidate(judge, problem, baselines, on_samples)
    )
    judge.seconds["timing"] = time.perf_counter() - mark
    return finding, timing


def _signature_of(signature: Signature | str | None, source: str) -> Signature | None:
    if isinstance(signature, Signature):
        return signature
    if isinstance(signature, str):
        return parse_header("//! " + signature.strip() + "\n").signature
    try:
        return parse_candidate(source).header.signature
    except LLMKernelError:
        return None


def adopt_signature(problem: Problem, declared: Signature | None) -> None:
    """Take symbolic shapes from a signature where they fit the example, keeping the problem's names and dtypes.

    Sizes that the example ties and the signature does not are varied apart from each other; literal sizes stay.
    """
    if declared is None or len(declared.inputs) != len(problem.signature.inputs):
        return
    pairs = list(zip(declared.inputs, problem.signature.inputs, strict=True))
    if any(isinstance(d, ArraySpec) != isinstance(m, ArraySpec) for d, m in pairs):
        return
    sizes = _solve(declared, problem)
    if sizes is None:
        return
    inputs = tuple(
        ArraySpec(m.name, m.dtype, d.dims, is_inout=m.is_inout)
        if isinstance(d, ArraySpec) and isinstance(m, ArraySpec)
        else m
        for d, m in pairs
    )
    outputs = problem.signature.outputs
    if len(declared.outputs) == len(outputs):
        outputs = tuple(
            ArraySpec(m.name, m.dtype, d.dims) for d, m in zip(declared.outputs, outputs, strict=True)
        )
    problem.sizes = sizes
    problem.signature = Signature(problem.signature.name, inputs, outputs)


def _solve(declared: Signature, problem: Problem) -> dict[str, int] | None:
    """Bind the example to a signature; None where it does not fit."""
    from llmkernel.candidate.binding import bind, header_facts
    from llmkernel.candidate.statements import LaunchHeader

    arguments: list[CallArgument] = []
    for value in problem.host_inputs():
        if is_array(value):
            arguments.append(ArrayArgument(dtype_name(value.dtype), tuple(value.shape)))
        else:
            arguments.append(ScalarValue(value.item() if hasattr(value, "item") else value))
    header = LaunchHeader(declared, ())
    try:
        binding = bind(header, header_facts(header), arguments)
    except LLMKernelError:
        return None
    used = {n for s in declared.inputs if isinstance(s, ArraySpec) for d in s.dims for n in d.names}
    return {k: v for k, v in binding.dims.items() if k in used and k not in binding.scalars}


def _report(
    judge: Judge, problem: Problem, level: Level, finding: Finding | None, timing: Timing | None
) -> Report:
    outcome = "passed" if finding is None else finding.outcome
    device: dict[str, Any] = {"device": judge.device}
    if judge.session is not None:
        device |= {**judge.session.limits().to_dict(), "versions": judge.session.versions()}
        device["sandbox"] = ", ".join(judge.session.sandbox()["parts"]) or "none"
    errors = [d.figures for d in judge.draws if "allowed" in d.figures]
    worst = max(errors, key=lambda f: f["error"] / f["allowed"] if f["allowed"] else 0.0, default={})
    workloads = tuple(
        {
            "sizes": dict(d.workload.sizes),
            "family": d.workload.family,
            "layout": d.workload.layout,
            "is_users_own": d.workload.is_users_own,
            "outcome": "failed" if finding is not None and d is judge.draws[-1] and d.failed else "passed",
            **{k: d.figures.get(k) for k in ("error", "allowed", "reference_error")},
        }
        for d in judge.draws
    )
    return Report(
        outcome=outcome,
        headline=_headline(judge, finding, worst, level),
        name=problem.name,
        signature=str(problem.signature),
        device=device,
        level=level,
        checks=tuple(judge.checks.values()),
        workloads=workloads,
        tolerance=_tolerance(problem, judge, worst),
        compile=judge.compiled,
        fault=finding.evidence if finding is not None and "kind" in finding.evidence else {},
        feedback="" if finding is None else feedback_of(finding),
        not_checked=tuple(_not_checked(judge, problem, level)),
        warnings=tuple(judge.warnings),
        timing=timing if outcome == "passed" else None,
        seconds=judge.seconds,
    )


def _headline(judge: Judge, finding: Finding | None, worst: dict[str, float], level: Level) -> str:
    if finding is not None:
        return finding.summary
    draws = len(judge.draws)
    families = len({d.workload.family for d in judge.draws})
    sizes = len({tuple(d.workload.sizes.items()) for d in judge.draws})
    text = f"Agrees with the reference on {draws} draws ({sizes} sizes, {families} value families)"
    if worst:
        text += f"; greatest error {in_eps(worst, 'error')}, the reference's own "
        text += f"{in_eps(worst, 'reference_error')}, allowed {in_eps(worst, 'allowed')}"
    return text + (". Quick check only." if level == "quick" else ".")


def in_eps(figures: dict[str, float], name: str) -> str:
    """Return a row-scaled error in units of the result dtype's eps, such as ``3.1 eps``."""
    count = figures[name] / figures["eps"]
    return f"{count:.0f} eps" if 99.5 <= count < 1e6 else f"{count:.2g} eps"


def _tolerance(problem: Problem, judge: Judge, worst: dict[str, float]) -> dict[str, Any]:
    if problem.tolerance is not None:
        reason = f"The user set the relative tolerance to {problem.tolerance:g}."
        policy = "user"
    elif all(
        spec.dtype in DTYPES and DTYPES[spec.dtype].kind not in "fc" for spec in problem.signature.outputs
    ):
        policy, reason = "exact", "Integers and booleans must agree exactly."
    else:
        policy = "derived"
        reason = (
            "Row-scaled error against the reference in float64; allowed: 4 × the reference's own error, at least "
            "2 eps + 8 eps √n, at most 16 times that, with n the measured length of the reduction."
        )
    data: dict[str, Any] = {"policy": policy, "reason": reason, **worst}
    if judge.has_oracle is False:
        data["reason"] += (
            " The reference does not run in float64: its own result at its own dtype was the measure."
        )
        data["has_oracle"] = False
    return data


def _not_checked(judge: Judge, problem: Problem, level: Level) -> list[str]:
    out = []
    if level == "quick":
        out.append(
            "Only the user's inputs and one odd size were run: no further value families, sizes or controls."
        )
    out += not_looked_for(judge.checks.values())
    if judge.device == "cpu":
        out.append("Nothing ran on a GPU: the kernel was compiled for the host and emulated.")
    out.append(f"Dtypes other than {', '.join(sorted({s.dtype for s in problem.signature.arrays()}))}.")
    largest = max((math.prod(b.shape) for d in judge.draws for b in d.plan.buffers), default=0)
    if largest:
        out.append(f"Arrays of more than {largest} elements: no larger one was run.")
    ranges = [
        f"`{spec.name}` {value.min()} … {value.max()}"
        for spec, value in zip(problem.signature.inputs, problem.host_inputs(), strict=True)
        if isinstance(spec, ArraySpec) and DTYPES[spec.dtype].kind in "iu" and value.size
    ]
    if ranges:
        what = "Integers outside of the example's range, or of the axis that they count along: "
        out.append(what + ", ".join(ranges) + ".")
    fixed = [f"{k}={redact(repr(v)[:4000])}"[:60] for k, v in problem.reference.fixed.items()]
    if fixed:
        out.append("Other values of " + ", ".join(fixed) + ": built into the kernel.")
    if not problem.sizes:
        out.append("Sizes other than the example's: the header fixes them.")
    if judge.session is not None:
        out += judge.session.sandbox()["missing"]
    dropped = list(dict.fromkeys(judge.dropped))
    out += dropped[:12]
    if len(dropped) > 12:
        out.append(f"… and {len(dropped) - 12} more draws that were left out.")
    return out
