"""Which tools look at a candidate, over which draws, and what they leave unseen.

A full verification looks inside a few runs by the cheaper tool: checked mode of the `cpu` device answers for bounds,
unwritten memory, races and barriers in a second, also of a kernel that is judged on a GPU, beside its draws there. Where it
does not know what the kernel uses, compute-sanitizer's memcheck stands in. What is asked for by name is compute-sanitizer's
on a GPU.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace

from llmkernel.devices.base import DeviceLimits
from llmkernel.evaluation.draw import Draw, Finding
from llmkernel.evaluation.judge import Judge, size_of, threads_of
from llmkernel.evaluation.races import suspicions_of
from llmkernel.evaluation.report import CheckResult
from llmkernel.evaluation.tools import TOOLS, check_emulated, sanitize, workloads_for_tools
from llmkernel.evaluation.trial import Verdict
from llmkernel.evaluation.worker.client import POOL
from llmkernel.problem.workloads import Workload

Results = list[tuple[CheckResult, Finding | None]]

# A few seconds under a tool.
_INSTRUMENTED_THREADS = 1 << 19
# What nobody asked for ends after this many seconds, but for the first draw.
_BUDGET_SECONDS = 2.0
_MOST_BESIDE_A_GPU = 4
_AT_ONCE = 2
_POLL_SECONDS = 0.25


class ToolRuns:
    """Tools at work from `begin_tools` to `finish`: on a GPU beside the draws, emulated after them."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._stop = threading.Event()
        self._threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="llmkernel-tools")
        self._begun: list[Future[Results]] = []
        self._later: list[Callable[[], Results]] = []
        judge.on_close.append(self._close)

    def sanitize(self, tool: str, draw: Draw) -> None:
        """Run a tool of compute-sanitizer over a draw, in a process beside this one."""
        self._begun.append(self._threads.submit(self._sanitized, tool, draw))

    def check(self, draws: Sequence[Draw], tools: Sequence[str], *, budget: float | None) -> None:
        """Run draws in checked mode once `finish` is called: emulated, they would take the processors from the others."""
        self._later.append(lambda: self._checked(draws, tools, budget))

    def check_or_memcheck(self, draws: Sequence[Draw], smallest: Draw, tools: Sequence[str] = TOOLS) -> None:
        """Run draws in checked mode beside the GPU's, and memcheck over the smallest one where that says nothing."""

        def run() -> Results:
            results = self._checked(draws, tools, _BUDGET_SECONDS)
            if any(result.status in ("passed", "failed") for result, _ in results) or self._stop.is_set():
                return results
            return results + self._sanitized("memcheck", smallest)

        self._begun.append(self._threads.submit(run))

    def finish(self) -> None:
        """Wait for the tools, and add what they say to the report; raises `Verdict` at a finding."""
        for run in (*(_waited(f) for f in self._begun), *self._later):
            for result, finding in run():
                if finding is not None:
                    raise Verdict(finding, result.name)
                known = self._judge.checks.get(result.name)
                if known is None or known.status != "passed":
                    self._judge.add(result)

    def _sanitized(self, tool: str, draw: Draw) -> Results:
        return [sanitize(tool, self._judge.source, draw.plan, draw.payloads, self._stop)]

    def _checked(self, draws: Sequence[Draw], tools: Sequence[str], budget: float | None) -> Results:
        limit = float("inf") if budget is None else time.monotonic() + budget
        found: dict[str, tuple[CheckResult, Finding | None]] = {}
        seen = 0
        for draw in draws:
            if self._stop.is_set() or (found and time.monotonic() > limit):
                break
            for result, finding in check_emulated(tools, self._judge.source, draw.plan, draw.payloads):
                if finding is not None:
                    return [(result, finding)]
                if result.name not in found or result.status == "passed":
                    found[result.name] = (result, None)
            seen += 1
        over = f"nothing found over {seen} small draw{'s' if seen != 1 else ''}"
        return [(replace(r, summary=over) if r.status == "passed" else r, f) for r, f in found.values()]

    def _close(self) -> None:
        self._stop.set()
        if any(not f.done() for f in self._begun):
            # Nobody waits for a candidate that still runs in checked mode.
            POOL.discard_current("cpu")
        self._threads.shutdown(wait=False, cancel_futures=True)


def _waited(future: Future[Results]) -> Callable[[], Results]:
    def wait() -> Results:
        while True:
            # A wait without an end cannot be interrupted on Windows.
            with contextlib.suppress(TimeoutError):
                return future.result(timeout=_POLL_SECONDS)

    return wait


def begin_tools(
    judge: Judge,
    asked: Sequence[str],
    taken: Sequence[Workload],
    quick: Sequence[Workload],
    limits: DeviceLimits,
    *,
    is_full: bool,
) -> ToolRuns:
    """Begin to run the tools that were asked for, and those that a full verification runs by itself."""
    runs = ToolRuns(judge)
    problem = judge.problem

    def drawn(device: str) -> list[Draw]:
        workloads = workloads_for_tools(device, problem, taken, quick)
        draws = [d for w in workloads if (d := judge.prepare_draw(w, limits)) is not None and d.plan.launches]
        draws.sort(key=size_of)
        return [d for d in draws if d is draws[0] or threads_of(d.plan) <= _INSTRUMENTED_THREADS]

    if judge.device == "cpu":
        # What is asked for comes besides what a full verification runs, over more draws.
        tools = TOOLS if is_full else tuple(asked)
        if tools and (draws := drawn("cpu")):
            runs.check(draws, tools, budget=None if asked else _BUDGET_SECONDS)
        return runs
    from llmkernel.devices.cuda.sanitizer import find_sanitizer

    is_suspected = is_full and bool(suspicions_of(judge.source))
    named = tuple(dict.fromkeys((*asked, *(("racecheck",) if is_suspected else ()))))
    draws = drawn(judge.device) if named or is_full else []
    if not draws:
        return runs
    is_installed = find_sanitizer() is not None
    for draw in draws if is_installed else ():
        for tool in named:
            runs.sanitize(tool, draw)
    if is_full or (named and not is_installed):
        # Without compute-sanitizer checked mode answers for what was asked for, too.
        tools = TOOLS if is_full else named
        runs.check_or_memcheck(drawn("cpu")[:_MOST_BESIDE_A_GPU], draws[0], tools)
    return runs
