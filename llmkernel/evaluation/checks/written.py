"""Every element of every result was written.

Reason: a kernel that does nothing "matches" when its output lands on the reference's freed buffer (Sakana's withdrawn
claim; KernelBench pull request 82, ``result_reuse_kernel.py``). Two runs over a random pattern and its complement tell
an element that was never written from one that happens to equal the pattern.
"""

from __future__ import annotations

import numpy as np

from llmkernel.evaluation.checks.base import Check
from llmkernel.evaluation.draw import Draw, Finding


class Written(Check):
    """Report elements that still hold the poison."""

    name = "every element written"
    covers = "no element keeps the random pattern that was there before"

    def inspect(self, draw: Draw) -> Finding | None:
        """Return a finding for the first result with unwritten elements."""
        if draw.result is None:
            return None
        for slot in draw.slots:
            hit = draw.result.unwritten.get(slot.buffer)
            if hit and slot.got is not None:
                first = [int(i) for i in np.unravel_index(hit["first"], slot.got.shape)]
                return Finding(
                    "not_written",
                    f"{hit['count']} of {slot.got.size} elements of `{slot.name}` were never written, the first at "
                    f"{first}, at {draw.workload.label()}.",
                    {
                        **draw.where(),
                        "result": slot.name,
                        "count": hit["count"],
                        "total": int(slot.got.size),
                        "element": first,
                        "map": hit["map"],
                    },
                )
        return None
