"""Nothing outside of the arrays was written.

Reason: an out-of-bounds write that lands in mapped memory changes no result of this run and ruins another
(research/cases.md A17; carmen-kernels' guard tails).
"""

from __future__ import annotations

from llmkernel.evaluation.checks.base import Check
from llmkernel.evaluation.draw import Draw, Finding


class GuardBands(Check):
    """Compare the random bytes in front of and behind every buffer with what they were."""

    name = "guard bands"
    covers = "no write in front of or behind any array"
    needs_values = False

    def inspect(self, draw: Draw) -> Finding | None:
        """Return a finding for the first buffer with a changed guard byte."""
        if draw.result is None or not draw.result.guards:
            return None
        hit = draw.result.guards[0]
        shape = list(draw.plan.buffer(hit["buffer"]).shape)
        return Finding(
            "out_of_bounds",
            f"`{hit['buffer']}` {shape} was written {hit['side']} its {'start' if hit['side'] == 'before' else 'end'}: "
            f"element {hit['element']} (flat), at {draw.workload.label()}.",
            {**draw.where(), "argument": hit["buffer"], "element": hit["element"], "shape": shape},
        )
