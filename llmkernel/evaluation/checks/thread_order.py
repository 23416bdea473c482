"""Results do not depend on the order in which threads and blocks run.

Reason: CUDA promises no order. The `cpu` device can choose it: forward, reverse and random orders find most missing
barriers and inter-block dependencies at no cost (shared findings on running CUDA C++ on a CPU).
"""

from __future__ import annotations

import numpy as np

from llmkernel.evaluation.checks.base import Check
from llmkernel.evaluation.checks.faults import outcome_of_fault
from llmkernel.evaluation.checks.repeatable import uses_atomics
from llmkernel.evaluation.draw import Draw, Finding
from llmkernel.evaluation.tolerance import comparable, row_error
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
                    f"{other.fault.message.rstrip('.')} in {order} thread order, at {draw.workload.label()}.",
                    {**draw.where(), "order": order, "kind": other.fault.kind, **other.fault.details},
                )
            payloads = dict(zip(draw.plan.results, other.results, strict=True)) | other.finals
            for slot in draw.slots:
                assert slot.got is not None
                got = np.frombuffer(payloads[slot.buffer].tobytes(), DTYPES[slot.dtype].numpy).reshape(
                    slot.shape
                )
                unequal = got.tobytes() != slot.got.tobytes()
                if unequal and not self._is_rounding(draw, slot.got, got, slot.target.allowed.relative):
                    differ = np.flatnonzero(_bits(got) != _bits(slot.got))
                    return Finding(
                        "data_race",
                        f"`{slot.name}` depends on the order in which threads run: {differ.size} elements differ in "
                        f"{order} order, at {draw.workload.label()}. A barrier is missing, or blocks depend on each other.",
                        {**draw.where(), "order": order, "result": slot.name, "count": int(differ.size)},
                    )
        return None

    @staticmethod
    def _is_rounding(draw: Draw, first: np.ndarray, other: np.ndarray, allowed: float) -> bool:
        if first.dtype.kind in "iub" or not uses_atomics(draw.source):
            return False
        wide = first.astype(np.complex128 if np.iscomplexobj(first) else np.float64)
        mask = comparable(other, wide, None)
        return float(row_error(other, wide, mask)[2].max(initial=0.0)) <= 2.0 * allowed


def _bits(array: np.ndarray) -> np.ndarray:
    return (
        np.frombuffer(array.tobytes(), np.uint8).reshape(-1, array.dtype.itemsize).sum(axis=1, dtype=np.int64)
    )
