"""Results do not depend on the order in which threads and blocks run.

Reason: CUDA promises no order. The `cpu` device can choose it: forward, reverse and random orders find most missing
barriers and inter-block dependencies at no cost (shared findings on running CUDA C++ on a CPU).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from llmkernel.evaluation.checks.base import Check
from llmkernel.evaluation.checks.faults import outcome_of_fault
from llmkernel.evaluation.checks.repeatable import uses_atomics
from llmkernel.evaluation.draw import Draw, Finding
from llmkernel.problem.arrays import HostArray
from llmkernel.problem.dtypes import DTYPES


class ThreadOrder(Check):
    """Compare runs in other thread orders with the forward one."""

    name = "thread order"
    covers = "forward, reverse and random thread orders agree"

    def inspect(self, draw: Draw) -> Finding | None:
        """Return a finding for the first order whose result differs."""
        if draw.result is None:
            return None
        for order, other in draw.orders.items():
            if other.fault is not None:
                return Finding(
                    outcome_of_fault(other.fault),
                    f"{other.fault.message.rstrip('.')}. Where: {order} thread order, {draw.workload.label()}.",
                    {**draw.where(), "order": order, "kind": other.fault.kind, **other.fault.details},
                )
            payloads = dict(zip(draw.plan.results, other.results, strict=True)) | other.finals
            for number, slot in enumerate(draw.slots):
                assert slot.got is not None
                got = np.frombuffer(payloads[slot.buffer].tobytes(), DTYPES[slot.dtype].numpy).reshape(
                    slot.shape
                )
                unequal = got.tobytes() != slot.got.tobytes()
                if unequal and not (uses_atomics(draw.source) and draw.agrees(number, got)):
                    differ = _differ(got, slot.got)
                    return Finding(
                        "data_race",
                        f"`{slot.name}` depends on the order in which threads run: {differ.size} elements differ in "
                        f"{order} order, at {draw.workload.label()}. A barrier is missing, or blocks depend on each other.",
                        {**draw.where(), "order": order, "result": slot.name, "count": int(differ.size)},
                    )
        return None


def _differ(a: HostArray, b: HostArray) -> npt.NDArray[np.int64]:
    x, y = (np.frombuffer(v.tobytes(), np.uint8).reshape(-1, v.dtype.itemsize) for v in (a, b))
    return np.flatnonzero((x != y).any(axis=1))
