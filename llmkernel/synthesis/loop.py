"""The loop: prompt, reply, candidate, report, feedback, until one is accepted or a limit is reached."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from llmkernel.candidate.reply import extract_source
from llmkernel.devices.base import DeviceLimits
from llmkernel.errors import LLMKernelError, NotAcceptedError, ProviderError, ReplyError
from llmkernel.evaluation.evaluate import evaluate_problem
from llmkernel.evaluation.report import CheckResult, Report
from llmkernel.problem.problem import Problem
from llmkernel.prompts.build import build_request
from llmkernel.providers.base import Provider, Reply, Request, Started, TextDelta, Thinking, Usage, Waiting
from llmkernel.providers.errors import BudgetReachedError, failure_of_reply
from llmkernel.providers.usage import stream_counted
from llmkernel.synthesis.events import (
    Attempt,
    AttemptFinished,
    CheckFinished,
    GaveUp,
    PromptBuilt,
    SamplesTaken,
    StageStarted,
    SynthesisEvent,
    TextReceived,
    ThinkingSeen,
    WaitingSeen,
)

Listener = Callable[[SynthesisEvent], None]

# A truncated reply is asked for again with a larger limit, this often and no more.
TRUNCATION_RETRIES = 1
DEFAULT_REPLY_TOKENS = 16_000


@dataclass
class LoopOptions:
    """Limits of a loop.

    Attributes
    ----------
    attempts : int
        Rounds before giving up.
    model, effort : str or None
    max_tokens : int or None
        Limit of one reply.
    target : float or None
        Speed-up over the best baseline at which the loop stops looking for a faster candidate.
    timeout : float
        Seconds that one execution may take.
    total_seconds : float or None
        Wall-clock limit of the whole loop.
    budget_usd : float or None
        Of this loop, checked before a request.
    token_budget : int or None
        Tokens of all attempts, input and output; checked before a request.
    notebook_budget_usd : float or None
        Of the whole session (`llmkernel.providers.usage`), checked before a request.
    arch : str or None
    baselines : dict
    checks : sequence of str
        Tools to run besides; see `llmkernel.evaluate`.
    """

    attempts: int = 4
    model: str | None = None
    effort: str | None = None
    max_tokens: int | None = None
    target: float | None = None
    timeout: float = 20.0
    total_seconds: float | None = None
    budget_usd: float | None = None
    notebook_budget_usd: float | None = None
    token_budget: int | None = None
    arch: str | None = None
    baselines: dict[str, Callable[..., Any]] = field(default_factory=dict)
    checks: Sequence[str] = ()


@dataclass
class LoopResult:
    """The accepted attempt, and all of them."""

    accepted: Attempt
    attempts: tuple[Attempt, ...]
    usage: Usage
    cost_usd: float | None


class Loop:
    """One synthesis.

    Parameters
    ----------
    problem : Problem
    provider : Provider
    device : str
    limits : DeviceLimits
    options : LoopOptions
    listener : callable
        Receives every event.
    """

    def __init__(
        self,
        problem: Problem,
        provider: Provider,
        device: str,
        limits: DeviceLimits,
        options: LoopOptions,
        listener: Listener,
    ) -> None:
        self.problem = problem
        self.provider = provider
        self.device = device
        self.limits = limits
        self.options = options
        self.emit = listener
        self.attempts: list[Attempt] = []
        self.usage = Usage()
        self.cost_usd: float | None = 0.0
        self._started = time.monotonic()
        self._advice: str | None = None

    def run(self) -> LoopResult:
        """Run until a candidate is accepted.

        Raises
        ------
        llmkernel.errors.NotAcceptedError
            When a limit was reached first; carries all attempts.
        llmkernel.errors.ProviderError
            When the provider fails.
        """
        reason = ""
        while len(self.attempts) < self.options.attempts:
            reason = self._spent()
            if reason:
                break
            seen = {a.source for a in self.attempts if a.source}
            try:
                attempt = self._attempt(len(self.attempts) + 1)
            except ProviderError as error:
                # An offline provider that has nothing more to offer ends the attempts; it did not fail. Nor does a budget.
                has_no_more = self.provider.is_offline or isinstance(error, BudgetReachedError)
                is_exhausted = has_no_more and bool(self.attempts)
                if self._best() is None and not is_exhausted:
                    self.emit(GaveUp(error.what, tuple(self.attempts)))
                    raise
                reason = error.what
                self._advice = error.next_step if isinstance(error, BudgetReachedError) else None
                break
            self.attempts.append(attempt)
            self.emit(AttemptFinished(attempt))
            if (
                attempt.report is not None
                and attempt.report.is_passed
                and self._is_fast_enough(attempt.report)
            ):
                break
            if attempt.source is not None and attempt.source in seen:
                reason = "The same candidate came back."
                break
        best = self._best()
        if best is not None:
            return LoopResult(best, tuple(self.attempts), self.usage, self.cost_usd)
        reason = reason or f"The limit of {self.options.attempts} attempts was reached."
        self.emit(GaveUp(reason, tuple(self.attempts)))
        raise self._not_accepted(reason)

    def _attempt(self, number: int) -> Attempt:
        request = build_request(
            self.problem,
            limits=self.limits,
            attempts=self.attempts,
            model=self.options.model,
            effort=self.options.effort,
            max_tokens=self.options.max_tokens,
            target_note=self._target_note(),
        )
        prompt = request.messages[-1].text
        tokens = self.provider.count_tokens(request)
        parts = (("system", request.system), *((m.role, m.text) for m in request.messages))
        asked = self.provider.describe(request)
        sent = () if self.provider.is_offline else parts
        self.emit(PromptBuilt(number, self.options.attempts, asked, tokens, sent))
        started = time.perf_counter()
        reply = self._reply(request)
        seconds = {"provider": time.perf_counter() - started}
        source, report = self._source(reply)
        if source is not None and report is None:
            started = time.perf_counter()
            report = self._with_profile(source, self._evaluate(source))
            seconds["evaluation"] = time.perf_counter() - started
        return Attempt(number, prompt, reply, source, report, seconds)

    def _reply(self, request: Request) -> Reply:
        """Stream one reply; a truncated one is asked for again with a larger limit."""
        reply = self._stream(request)
        for _ in range(TRUNCATION_RETRIES):
            if reply.stop_reason != "max_tokens":
                break
            larger = 2 * max(request.max_tokens or DEFAULT_REPLY_TOKENS, reply.usage.output_tokens)
            self.emit(
                WaitingSeen(0.0, f"The reply was cut off; asking again with a limit of {larger} tokens.")
            )
            request = Request(
                request.system,
                request.messages,
                model=request.model,
                effort=request.effort,
                max_tokens=larger,
                problem=request.problem,
            )
            reply = self._stream(request)
        return reply

    def _stream(self, request: Request) -> Reply:
        self._check_budgets(request)
        reply: Reply | None = None
        counted = stream_counted(
            self.provider,
            request,
            purpose=self.problem.name,
            budget_usd=self.options.notebook_budget_usd,
        )
        # Closed also when a listener is interrupted: the connection must not outlive the cell.
        with contextlib.closing(counted) as events:  # type: ignore[type-var]
            for event in events:
                if isinstance(event, TextDelta):
                    self.emit(TextReceived(event.text))
                elif isinstance(event, Thinking):
                    self.emit(ThinkingSeen(event.text))
                elif isinstance(event, Waiting):
                    self.emit(WaitingSeen(event.seconds, event.reason))
                elif isinstance(event, Reply):
                    reply = event
                else:
                    assert isinstance(event, Started)
        if reply is None:
            raise ProviderError(
                f"{self.provider.name} ended its stream without a reply.",
                rule="the last event of a stream is the reply",
                next_step="Run the cell again; if it happens again, the provider plug-in is at fault.",
            )
        self.usage = self.usage + reply.usage
        known = self.cost_usd is not None and reply.cost_usd is not None
        self.cost_usd = (self.cost_usd or 0.0) + (reply.cost_usd or 0.0) if known else None
        return reply

    def _check_budgets(self, request: Request) -> None:
        """Refuse a request that a budget of this cell has no room for: what its prompt alone takes is estimated."""
        if self.provider.is_offline:
            return
        limit, spent = self.options.budget_usd, self.cost_usd
        least = self.provider.estimate_usd(request) or 0.0
        if limit is not None and spent is not None and spent + least > limit:
            raise BudgetReachedError(
                f"The cell's budget of ${limit:.4g} has no room for another request; it was not sent.",
                rule="budget_usd is checked before a request, never after",
                received=f"${spent:.4g} spent so far, about ${least:.4g} more for the prompt alone",
                next_step="Raise it: %config LLMKernel.budget_usd = …",
            )
        most, taken = self.options.token_budget, self.usage.input_tokens + self.usage.output_tokens
        size = self.provider.count_tokens(request)
        if most is not None and taken + size > most:
            raise BudgetReachedError(
                f"The cell's budget of {most} tokens has no room for another request; it was not sent.",
                rule="token_budget is checked before a request, never after",
                received=f"{taken} tokens taken so far, about {size} more for the prompt alone",
                next_step="Raise it: %config LLMKernel.token_budget = …",
            )

    def _source(self, reply: Reply) -> tuple[str | None, Report | None]:
        """Return the candidate of a reply, or the report that says why there is none."""
        if reply.stop_reason == "refusal":
            refused = failure_of_reply(reply, provider=self.provider.name)
            assert refused is not None
            raise refused
        if reply.stop_reason == "max_tokens":
            # Looked at before the text: half a kernel may well compile.
            return None, self._rejected(
                "The reply was cut off at its token limit; it was not compiled.", "Be shorter."
            )
        try:
            return extract_source(reply.text).source, None
        except ReplyError as error:
            return None, self._rejected(error.what, error.next_step or "")

    def _rejected(self, what: str, hint: str) -> Report:
        return Report(
            "rejected",
            what,
            name=self.problem.name,
            signature=str(self.problem.signature),
            device=self.limits.to_dict(),
            checks=(CheckResult("reply", "failed", what),),
            feedback=f"Outcome: rejected.\n{what}\n{hint}".strip(),
        )

    def _evaluate(self, source: str) -> Report:
        return evaluate_problem(
            self.problem,
            source,
            device=self.device,
            level="full",
            timeout=self.options.timeout,
            arch=self.options.arch,
            baselines=self.options.baselines,
            checks=self.options.checks,
            on_check=lambda c: self.emit(CheckFinished(c)),
            on_stage=lambda s: self.emit(StageStarted(s)),
            on_samples=lambda rows: self.emit(SamplesTaken(rows)),
        )

    def _with_profile(self, source: str, report: Report) -> Report:
        """Return the report of a right candidate that is to be made faster with what limits it as its feedback."""
        is_last = len(self.attempts) + 1 >= self.options.attempts
        if not report.is_passed or self._is_fast_enough(report) or is_last or self.provider.is_offline:
            return report
        from llmkernel.evaluation.profiling import profile_report

        self.emit(StageStarted("profile"))
        try:
            profile = profile_report(self.problem, source, report, device=self.device)
        except LLMKernelError:  # a profile that cannot be had costs only the advice
            return report
        return report if profile is None else replace(report, feedback=profile.feedback())

    def _best(self) -> Attempt | None:
        passed = [a for a in self.attempts if a.report is not None and a.report.is_passed]
        timed = [a for a in passed if a.report is not None and a.report.timing is not None]
        if timed:
            return min(timed, key=lambda a: a.report.timing.kernel.median_ms)  # type: ignore[union-attr]
        return passed[0] if passed else None

    def _is_fast_enough(self, report: Report) -> bool:
        if self.options.target is None:
            return True
        ratio = best_ratio(report)
        return ratio is not None and ratio >= self.options.target

    def _target_note(self) -> str:
        if self.options.target is None:
            return ""
        note = f"Wanted: at least {self.options.target:g} times the speed of the best baseline."
        best = self._best()
        ratio = best_ratio(best.report) if best is not None and best.report is not None else None
        return note if ratio is None else f"{note} Reached so far: {ratio:.2f}."

    def _spent(self) -> str:
        limit = self.options.total_seconds
        if limit is not None and time.monotonic() - self._started > limit:
            return f"The cell's limit of {limit:g} s was reached."
        budget = self.options.budget_usd
        if budget is not None and self.cost_usd is not None and self.attempts and self.cost_usd >= budget:
            return f"The budget of ${budget:g} was reached."
        tokens = self.usage.input_tokens + self.usage.output_tokens
        if self.options.token_budget is not None and tokens >= self.options.token_budget:
            return f"The budget of {self.options.token_budget} tokens was reached: {tokens} were taken."
        return ""

    def _not_accepted(self, reason: str) -> NotAcceptedError:
        last = self.attempts[-1] if self.attempts else None
        found = (
            last.report.headline
            if last is not None and last.report is not None
            else "no candidate was judged"
        )
        outcome = last.report.outcome if last is not None and last.report is not None else ""
        count = len(self.attempts)
        ended = f", the last one ended `{outcome}`" if outcome else ""
        return NotAcceptedError(
            f"No kernel for {self.problem.name}: {count or 'no'} attempt{'' if count == 1 else 's'}{ended}.",
            attempts=tuple(self.attempts),
            rule=reason,
            received=found,
            next_step=self._next_step(outcome),
        )

    def _next_step(self, outcome: str) -> str:
        """Return what helps against the limit that ended it."""
        if self._advice:
            return self._advice
        if outcome == "inconclusive":
            return "No other kernel will help: change the reference or its example inputs as the reason says."
        limit, budget = self.options.total_seconds, self.options.budget_usd
        if limit is not None and time.monotonic() - self._started > limit:
            return "Give it more time (--timeout), or ask for something simpler."
        if budget is not None and self.cost_usd is not None and self.cost_usd >= budget:
            return "Raise the budget: c.LLMKernel.budget_usd."
        if self.provider.is_offline:
            return (
                "Ask a model (--provider claude or codex, with a key), or write the kernel in a %%cuda cell."
            )
        return "Make the intent more precise, raise --attempts, or choose another --model; see the attempts above."


def best_ratio(report: Report) -> float | None:
    """Return the ratio to the fastest baseline: above 1 means that the kernel is faster."""
    timing = report.timing
    if timing is None or timing.is_emulation or timing.is_suspect:
        return None
    ratios = [b.ratio for b in timing.baselines if b.label == timing.best_baseline]
    return ratios[0] if ratios else None
