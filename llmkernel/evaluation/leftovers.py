"""Memory that is handed out again: outputs and scratch that still hold the results of an earlier call.

A kernel can look whether its output seems to be right already, or keep a result in scratch, and skip its work. Over poison
it never does; over the results of a call on nearly the same inputs it gives old results for new ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from llmkernel.devices.base import Bytes, DeviceLimits, ExecutionOptions
from llmkernel.evaluation.binding import prepare
from llmkernel.evaluation.draw import Draw, Finding
from llmkernel.evaluation.report import CheckResult
from llmkernel.evaluation.state import STATE, keeps_state
from llmkernel.evaluation.trial import Verdict
from llmkernel.problem.problem import HostInput
from llmkernel.problem.relations import restored
from llmkernel.problem.workloads import Workload, draw_inputs, new_seed

if TYPE_CHECKING:
    from llmkernel.evaluation.judge import Judge

_NAME = "no old results"
_CHANGED = 0.03


def is_telling(workload: Workload) -> bool:
    """Whether a draw is one of ordinary values at sizes that are quickly run."""
    is_plain = workload.layout == "contiguous" and workload.scalars == "none" and not workload.is_long
    return workload.family == "normal" and is_plain and 0 not in workload.sizes.values()


def check_leftovers(judge: Judge, draw: Draw, limits: DeviceLimits) -> None:
    """Run `draw`, which came out right, and then in the same buffers one that differs in a few elements of each input.

    Raises
    ------
    llmkernel.evaluation.trial.Verdict
        ``uninitialised_read`` where the second result is not right; ``wrong_value`` where it is also wrong over poison,
        because a variable remembers the first call.
    """
    assert judge.candidate is not None
    assert judge.session is not None
    first = draw.expected.inputs
    workload = draw.workload
    fresh = draw_inputs(judge.problem, workload.sizes, workload.family, seed=new_seed())
    mixed = restored(judge.problem, _partly(first, fresh, new_seed()))
    second = judge.prepare_draw(workload, limits, mixed)
    if second is None or second.plan != draw.plan:
        return
    payloads = [prepare(judge.candidate, first, limits).payloads, second.payloads]
    options = ExecutionOptions(timeout_seconds=judge.timeout, seed=new_seed() & 0x7FFFFFFF)
    results = judge.session.sequence(draw.plan, payloads, seed=new_seed(), options=options)
    second.payloads = {}
    second.fill(results[-1])
    try:
        judge.inspect_draw(second, limits)
    except Verdict as verdict:
        if verdict.finding.outcome not in ("wrong_value", "non_finite"):
            raise
        # Wrong by itself? Then neither memory nor the call before has to do with it.
        _inspect_again(judge, second, payloads[1:], limits)
        if keeps_state(judge.source):
            _refuse_memory(judge, second, payloads, limits)
        what = (
            "A result depends on what memory held before the call. Where outputs and scratch hold the results of a call on "
            f"nearly the same inputs: {verdict.finding.summary} Write every element, and read none that this call did not."
        )
        finding = Finding("uninitialised_read", what, verdict.finding.evidence)
        raise Verdict(finding, _NAME) from None
    judge.add(
        CheckResult(_NAME, "passed", "outputs and scratch that hold an earlier call's results change nothing")
    )


def _refuse_memory(
    judge: Judge, draw: Draw, payloads: Sequence[Mapping[str, Bytes]], limits: DeviceLimits
) -> None:
    """Run both calls over one load of the module, each in buffers of its own: what fails there remembers by a variable."""
    try:
        _inspect_again(judge, draw, payloads, limits)
    except Verdict as verdict:
        what = (
            "A result depends on the call before. After a call on nearly the same inputs, over one load of the module: "
            f"{verdict.finding.summary} Let no variable outlive the call that it was written in."
        )
        raise Verdict(Finding(verdict.finding.outcome, what, verdict.finding.evidence), STATE) from None


def _inspect_again(
    judge: Judge, draw: Draw, payloads: Sequence[Mapping[str, Bytes]], limits: DeviceLimits
) -> None:
    """Run calls over poison and one fresh load of the module; raises `Verdict` where the last one, `draw`, is wrong."""
    assert judge.session is not None
    options = ExecutionOptions(timeout_seconds=judge.timeout, seed=new_seed() & 0x7FFFFFFF)
    results = judge.session.sequence(
        draw.plan, payloads, repeats=[2] * len(payloads), seed=new_seed(), options=options
    )
    draw.fill(results[-1])
    judge.inspect_draw(draw, limits)


def _partly(base: Sequence[HostInput], other: Sequence[HostInput], seed: int) -> list[HostInput]:
    """Return `base` with a run of neighbouring elements of each array from `other`: most rows stay as they are."""
    start = np.random.default_rng(seed).uniform(0.05, 0.85)
    out: list[HostInput] = []
    for mine, theirs in zip(base, other, strict=True):
        if not isinstance(mine, np.ndarray):
            out.append(mine)
            continue
        mixed = mine.copy()
        begin = int(start * mine.size)
        end = max(begin + 1, int((start + _CHANGED) * mine.size))
        mixed.reshape(-1)[begin:end] = theirs.reshape(-1)[begin:end]
        out.append(mixed)
    return out
