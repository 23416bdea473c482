"""``%ask --kernel NAME --fix``: a changed kernel, offered once it has passed everything that the first one had to."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from llmkernel.candidate.reply import extract_source
from llmkernel.errors import NotAcceptedError
from llmkernel.prompts.ask import Section
from llmkernel.prompts.redaction import redact
from llmkernel.providers.base import Message, Reply, Request

if TYPE_CHECKING:
    from llmkernel.evaluation.report import Report
    from llmkernel.magics.ask_options import AskOptions
    from llmkernel.synthesis.generated_kernel import GeneratedKernel


def change_request(
    kernel: GeneratedKernel, question: str, sections: list[Section], options: AskOptions
) -> Request:
    """Return the request for a changed kernel: the problem, the kernel, its report, and what is wanted.

    Parameters
    ----------
    kernel : GeneratedKernel
    question : str
    sections : list of Section
        What else is sent along.
    options : AskOptions
    """
    from llmkernel.evaluation.worker.client import POOL
    from llmkernel.prompts.build import build_request
    from llmkernel.synthesis.events import Attempt

    now = Attempt(1, "", Reply(kernel.source, "end", ""), kernel.source, kernel.report)
    request = build_request(
        kernel.problem,
        limits=POOL.get(kernel.domain.device).limits(),
        attempts=[now],
        model=options.model,
        effort=options.effort,
        max_tokens=options.max_tokens,
    )
    *before, last = request.messages
    parts = [last.text, *(f"## Context: {s.label}\n\n{s.text}" for s in sections)]
    parts.append(f"## What is wanted now, in the user's own words\n\n{question}")
    return replace(request, messages=(*before, Message("user", redact("\n\n".join(parts)))))


def judge_change(
    kernel: GeneratedKernel, reply: Reply, asked: str, *, quiet: bool, live: str = "auto"
) -> tuple[str, Report]:
    """Judge the changed kernel of a reply in full, below the answer, and return it with its report.

    Parameters
    ----------
    kernel : GeneratedKernel
    reply : Reply
    asked : str
        ``provider · model · effort``.
    quiet : bool
        Show the report only.
    live : str
        How the way there is shown: see `llmkernel.display.front_end.live_mode`.

    Raises
    ------
    llmkernel.errors.ReplyError
        When the reply holds no kernel.
    llmkernel.errors.NotAcceptedError
        When it does not pass; its report stays on the screen.
    """
    from llmkernel.display.bundle import report_bundle
    from llmkernel.display.live import LiveOutput
    from llmkernel.evaluation.evaluate import evaluate_problem
    from llmkernel.synthesis.events import Attempt, AttemptFinished, CheckFinished, SamplesTaken, StageStarted

    source = extract_source(reply.text).source
    name, started = kernel.problem.name, time.perf_counter()
    with LiveOutput(name, quiet=quiet, live=live) as output:
        try:
            report = evaluate_problem(
                kernel.problem,
                source,
                device=kernel.domain.device,
                level="full",
                on_check=lambda check: output(CheckFinished(check)),
                on_stage=lambda stage: output(StageStarted(stage)),
                on_samples=lambda rows: output(SamplesTaken(rows)),
            )
        except KeyboardInterrupt as error:
            told = f"KeyboardInterrupt: the evaluation was stopped; {name} is as it was before."
            vars(error)["_render_traceback_"] = lambda: [told]
            raise
        seconds = {"evaluation": time.perf_counter() - started}
        attempt = Attempt(1, "", reply, source, report, seconds)
        output(AttemptFinished(attempt))
        if not report.is_passed:
            raise NotAcceptedError(
                f"The changed {name} was not accepted: {report.outcome}.",
                attempts=(attempt,),
                rule="a changed kernel is offered once it passed every check",
                received=report.headline,
                next_step="Ask again: the report is part of the conversation. The kernel in the notebook is as it was.",
            )
        output.finish(
            report_bundle(
                report,
                source=source,
                attempts=[attempt],
                provider=asked,
                model=reply.model,
                usage=reply.usage,
                cost_usd=reply.cost_usd,
            )
        )
    return source, report


def verdict_text(outcome: Any) -> str:
    """Return what the conversation keeps of a judged change."""
    report = outcome.attempts[-1].report if isinstance(outcome, NotAcceptedError) else outcome
    return f"(It was judged: {report.outcome}. {report.headline})"
