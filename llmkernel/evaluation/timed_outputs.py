"""What timed launches computed is judged again: a time belongs to a right result or to nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from llmkernel.candidate.candidate import Candidate
from llmkernel.devices.base import Bytes, DeviceLimits
from llmkernel.evaluation.binding import match_slots, prepare
from llmkernel.evaluation.checks.special_values import SpecialValues
from llmkernel.evaluation.checks.values import Values
from llmkernel.evaluation.draw import Draw, Finding
from llmkernel.evaluation.expected import expect
from llmkernel.evaluation.reduction import ReductionLengths
from llmkernel.problem.dtypes import DTYPES
from llmkernel.problem.problem import HostInput, Problem
from llmkernel.problem.workloads import Workload

CHECKED_OUTPUTS = 2


def check_timed_outputs(
    problem: Problem,
    candidate: Candidate,
    limits: DeviceLimits,
    workload: Workload,
    draws: Sequence[Sequence[HostInput]],
    answer: dict[str, Any],
    blobs: Sequence[Bytes],
) -> Finding | None:
    """Judge the results of some of the timed launches: they must be as right as any other.

    Parameters
    ----------
    workload : Workload
        Whose sizes the draws have.
    draws : sequence of sequence
        Host inputs of the timed launches.
    answer, blobs
        The worker's answer to ``time_outputs``.
    """
    lengths = ReductionLengths(problem)
    waiting = iter(blobs)
    for number, names in list(zip(answer["draws"], answer["names"], strict=True))[:CHECKED_OUTPUTS]:
        payloads = {n: next(waiting) for n in names}
        inputs = list(draws[number])
        expected = expect(problem, workload, inputs, lengths)
        plan = prepare(candidate, inputs, limits).plan
        draw = Draw(workload, plan, expected, match_slots(candidate, plan, expected), candidate.source)
        for slot in draw.slots:
            data = payloads[slot.buffer].tobytes()
            slot.got = np.frombuffer(data, DTYPES[slot.dtype].numpy).reshape(slot.shape)
        for check in (SpecialValues(), Values()):
            finding = check.inspect(draw)
            if finding is not None:
                what = f"A timed launch gave another result than the verified ones: {finding.summary}"
                return Finding(finding.outcome, what, finding.evidence)
    return None
