"""Inputs are bit for bit what they were.

Reason: a kernel that zeroes its input makes a later reference agree with it (KernelBench pull request 82,
research/cases.md A2).
"""

from __future__ import annotations

from llmkernel.evaluation.checks.base import Check
from llmkernel.evaluation.draw import Draw, Finding


class InputsUnchanged(Check):
    """Report inputs that the kernel changed without declaring them `inout`."""

    name = "inputs unchanged"
    covers = "every input is bit for bit as it was"

    def inspect(self, draw: Draw) -> Finding | None:
        """Return a finding for the first changed input."""
        if draw.result is None or not draw.result.mutated:
            return None
        hit = draw.result.mutated[0]
        return Finding(
            "input_mutated",
            f"Input `{hit['buffer']}` was changed: {hit['count']} elements, the first at flat index {hit['element']}, "
            f"at {draw.workload.label()}. Declare it `inout` only if the reference works in place.",
            {**draw.where(), "argument": hit["buffer"], "count": hit["count"], "element": hit["element"]},
        )
