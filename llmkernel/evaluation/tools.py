"""Tools that look inside a run: compute-sanitizer on a GPU, the checked mode of the `cpu` device without one.

They cost seconds, so they run where they are asked for (``checks``), and where a fault has to be explained: an illegal
address on a GPU names neither array nor line, nor does a store that the `cpu` device finds afterwards.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from llmkernel.candidate.missing_barriers import Suspicion, missing_barriers
from llmkernel.devices.base import Bytes, Fault
from llmkernel.devices.plan import LaunchPlan
from llmkernel.errors import LLMKernelError, UsageError
from llmkernel.evaluation.draw import Finding
from llmkernel.evaluation.report import CheckResult
from llmkernel.evaluation.worker.client import POOL, WorkerLostError
from llmkernel.problem.problem import Problem
from llmkernel.problem.workloads import Workload, element_count

if TYPE_CHECKING:
    from llmkernel.devices.cuda.sanitizer import SanitizerFinding

TOOLS = ("memcheck", "initcheck", "racecheck", "synccheck")
_SEEN_BY = {
    "memcheck": "accesses outside of arrays that did no harm",
    "initcheck": "reads of unwritten memory",
    "racecheck": "races that ended well",
    "synccheck": "barriers that not all threads reach",
}
# A tool slows a kernel down a hundred times: it is given a small draw.
LARGEST_BYTES = 64 << 20
# Elements of a draw, and draws, in checked mode: a second or two in all.
_LARGEST_EMULATED = 1 << 17
_MOST_EMULATED = 12
# One compilation and one run, each of which ends by itself before.
_CHECKED_SECONDS = 120.0


def chosen_tools(checks: Sequence[str]) -> tuple[str, ...]:
    """Return the tools that ``checks`` names.

    Parameters
    ----------
    checks : sequence of str
        Names of `TOOLS`, or ``all``.

    Raises
    ------
    llmkernel.errors.UsageError
        For a name that is none of them.
    """
    unknown = [c for c in checks if c not in (*TOOLS, "all")]
    if unknown:
        near = get_close_matches(str(unknown[0]), (*TOOLS, "all"), 1)
        raise UsageError(
            f"There is no check {unknown[0]!r} to ask for.",
            rule="checks are all, " + ", ".join(TOOLS),
            received=", ".join(checks),
            next_step=f"Did you mean {near[0]}?"
            if near
            else "Leave the option out: every other check always runs.",
        )
    return TOOLS if "all" in checks else tuple(t for t in TOOLS if t in checks)


def workloads_for_tools(
    device: str, problem: Problem, taken: Sequence[Workload], quick: Sequence[Workload]
) -> list[Workload]:
    """Return the draws that tools look at.

    On a GPU, where a run takes two seconds: the smaller quick one, and long axes, which make a block of a bounded grid
    work more than once. Emulated: the quick ones and other small sizes.
    """
    chosen = [w for w in taken if w in quick]
    if device != "cpu":
        smallest = sorted(chosen, key=lambda w: element_count(problem, w.sizes))[:1]
        return smallest + [w for w in taken if w.is_long and w not in chosen]
    sizes = [w.sizes for w in chosen]
    for workload in taken:
        is_plain = workload.family == "normal" and workload.layout == "contiguous" and not workload.is_long
        is_small = element_count(problem, workload.sizes) <= _LARGEST_EMULATED
        if is_plain and is_small and workload.sizes not in sizes and len(chosen) < _MOST_EMULATED:
            sizes.append(workload.sizes)
            chosen.append(workload)
    return chosen


def run_tool(
    tool: str, device: str, source: str, plan: LaunchPlan, payloads: Mapping[str, Bytes]
) -> tuple[CheckResult, Finding | None]:
    """Run one tool over one draw.

    Returns
    -------
    result : CheckResult
    finding : Finding or None
        What is wrong with the candidate.
    """
    if device == "cpu":
        return check_emulated((tool,), source, plan, payloads)[0]
    return sanitize(tool, source, plan, payloads)


def sanitize(
    tool: str,
    source: str,
    plan: LaunchPlan,
    payloads: Mapping[str, Bytes],
    stop: threading.Event | None = None,
) -> tuple[CheckResult, Finding | None]:
    """Run one tool of compute-sanitizer over one draw; it ends early once `stop` is set."""
    name = f"compute-sanitizer {tool}"
    if sum(p.nbytes for p in payloads.values()) > LARGEST_BYTES:
        return CheckResult(name, "not_run", "the smallest draw is too large for an instrumented run"), None
    from llmkernel.devices.cuda.sanitizer import run_sanitizer

    run = run_sanitizer(tool, source, plan, payloads, stop=stop)
    if run.problem:
        return CheckResult(name, "not_run", run.problem), None
    if not run.findings:
        return CheckResult(name, "passed", f"nothing found, in {run.seconds:.1f} s"), None
    suspicions = missing_barriers(source) if any(f.is_warning for f in run.findings) else ()
    certain = [f for f in run.findings if not f.is_warning or _is_suspected(f.lines, suspicions)]
    first = (certain or run.findings)[0]
    evidence = evidence_of(first) | {"count": len(run.findings)}
    if not certain:
        what = f"{first.message.rstrip('.')}, within one warp: the order of its lanes is not promised."
        return CheckResult(name, "warning", what, evidence), None
    finding = Finding(first.outcome, f"{tool}: {first.message}", evidence)
    return CheckResult(name, "failed", finding.summary, evidence), finding


def not_looked_for(results: Iterable[CheckResult]) -> list[str]:
    """Return a sentence on what no tool looked for, and why; nothing where all of them did."""
    seen, reasons = set(), []
    for result in results:
        tool = result.name.rpartition(" ")[2]
        if tool in _SEEN_BY and result.status in ("not_run", "not_applicable"):
            reasons.append(f"{result.name.removesuffix(' ' + tool)}: {result.summary.rstrip('.')}")
        elif tool in _SEEN_BY:
            seen.add(tool)
    left = [what for tool, what in _SEEN_BY.items() if tool not in seen]
    if not left:
        return []
    text = left[0] if len(left) == 1 else ", ".join(left[:-1]) + " and " + left[-1]
    why = (
        "; ".join(dict.fromkeys(reasons))
        or "the tools that see them did not run (a full verification ends with them)"
    )
    return [f"{text[0].upper()}{text[1:]}: {why}."]


def evidence_of(finding: SanitizerFinding) -> dict[str, Any]:
    """Return what is known of a finding; element 0 is, line 0 is not."""
    known = {k: v for k, v in vars(finding).items() if v is not None and v is not False and v not in ("", ())}
    return known if finding.line else {k: v for k, v in known.items() if k != "line"}


def check_emulated(
    tools: Sequence[str], source: str, plan: LaunchPlan, payloads: Mapping[str, Bytes]
) -> list[tuple[CheckResult, Finding | None]]:
    """Run one draw in checked mode, which answers for all tools at once."""
    asked = {"op": "check", "source": source, "plan": plan.to_dict(), "inputs": list(payloads)}
    try:
        # Compiled and run where every candidate is: in the worker.
        run, _ = POOL.get("cpu").request(asked, list(payloads.values()), timeout=_CHECKED_SECONDS)
    except (WorkerLostError, LLMKernelError) as error:
        lost = isinstance(error, WorkerLostError)
        why = f"the worker was lost: {error}" if lost else getattr(error, "what", str(error))
        return [(CheckResult(_checked_name(tool), "not_run", why), None) for tool in tools]
    return [_checked_result(tool, run) for tool in tools]


def _checked_name(tool: str) -> str:
    return f"checked mode {tool}"


def _checked_result(tool: str, run: Mapping[str, Any]) -> tuple[CheckResult, Finding | None]:
    name = _checked_name(tool)
    found = [f for f in run["findings"] if f["tool"] == tool]
    if found:
        first = found[0]
        evidence = {"kind": first["kind"], "kernel": first["kernel"], **first["details"], "count": len(found)}
        finding = Finding(first["outcome"], f"{tool}: {first['message']}", evidence)
        return CheckResult(name, "failed", finding.summary, evidence), finding
    if run["problem"]:
        return CheckResult(name, "not_applicable", run["problem"]), None
    return CheckResult(name, "passed", f"nothing found, in {run['seconds']:.1f} s"), None


def _is_suspected(lines: Sequence[int], suspicions: Sequence[Suspicion]) -> bool:
    """Whether accesses that race, all of them the candidate's own, are also accesses that no barrier separates.

    racecheck only warns of hazards within one warp, since a program may order its lanes in ways that the tool does not
    follow. Where the source shows no barrier between the same two lines, nothing orders them.
    """
    return any({s.first_line, s.second_line} <= set(lines) for s in suspicions)


def explained_fault(
    fault: Fault, device: str, source: str, plan: LaunchPlan, payloads: Mapping[str, Bytes]
) -> Fault:
    """Return a fault with the array, the element and the line that memcheck found, where it finds them."""
    # The `cpu` device names the place itself, but for stores that it only finds afterwards.
    is_named = device == "cpu" and "line" in fault.details
    if fault.kind != "illegal_address" or is_named:
        return fault
    _, finding = run_tool("memcheck", device, source, plan, payloads)
    if finding is None:
        return fault
    details = {**fault.details, **finding.evidence, "kind": fault.kind}
    if "__shared__" in finding.summary or "shared" in finding.evidence:
        details["is_shared_memory"] = True
    return Fault(fault.kind, f"{fault.message.rstrip('.')}; {finding.summary}", fault.kernel, details)
