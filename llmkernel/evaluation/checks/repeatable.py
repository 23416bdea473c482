"""The same draw gives the same bits, run after run.

Reason: a missing barrier passes once and fails on Thursday (research/cases.md A19). Runs that differ only by the order of
float atomics are told apart: they stay within the tolerance and the source says so.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from llmkernel.evaluation.checks.base import Check
from llmkernel.evaluation.draw import Draw, Finding, Slot
from llmkernel.problem.dtypes import DTYPES

_ATOMIC = re.compile(r"\b(?:atomic(?:Add|Sub|Exch|Min|Max|CAS)\w*|red\.|atom\.|atomic_ref)\b")


def uses_atomics(source: str) -> bool:
    """Whether the source holds atomic operations, comments aside."""
    bare = re.sub(r"//[^\n]*|/\*.*?\*/", " ", source, flags=re.DOTALL)
    return bool(_ATOMIC.search(bare))


class Repeatable(Check):
    """Compare repeated runs bit for bit."""

    name = "repeatable"
    covers = "repeated runs agree bit for bit"

    def inspect(self, draw: Draw) -> Finding | None:
        """Return a finding for runs that differ by more than the order of float atomics."""
        result = draw.result
        if result is None or not result.differs:
            return None
        for number, slot in enumerate(draw.slots):
            hit = result.differs.get(slot.buffer)
            if hit is None or _is_atomic_order(draw, number, slot):
                continue
            evidence = {**draw.where(), "result": slot.name, "count": hit["count"], "element": hit["first"]}
            if result.depends_on_poison:
                return Finding(
                    "uninitialised_read",
                    f"`{slot.name}` depends on memory that nobody wrote: {hit['count']} elements change with what "
                    f"outputs or scratch held before, at {draw.workload.label()}.",
                    evidence,
                )
            return Finding(
                "non_deterministic",
                f"`{slot.name}` differs between runs on the same inputs: {hit['count']} elements, the first at flat "
                f"index {hit['first']}, at {draw.workload.label()}. A barrier may be missing.",
                evidence,
            )
        return None

    def warning(self, draws: Sequence[Draw]) -> str | None:
        """Mention accepted differences."""
        seen = [d for d in draws if d.result is not None and d.result.differs]
        if not seen:
            return None
        return "Runs differ in the last bits: the kernel adds with float atomics, whose order is not fixed."


def _is_atomic_order(draw: Draw, number: int, slot: Slot) -> bool:
    result = draw.result
    if result is None or slot.target.is_exact or not uses_atomics(draw.source):
        return False
    other = np.frombuffer(result.others[slot.buffer].tobytes(), DTYPES[slot.dtype].numpy)
    return draw.agrees(number, other.reshape(slot.shape))
