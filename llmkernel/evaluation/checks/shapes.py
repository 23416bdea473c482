"""Result count, shapes and dtypes are the reference's.

Reason: a checker that broadcasts or converts before it compares accepts a float32 result for a float64 contract and one
row for many (cuda-engine compares after ``.float()``, research/kernels.md item 31).
"""

from __future__ import annotations

from llmkernel.evaluation.checks.base import Check
from llmkernel.evaluation.draw import Draw, Finding


class Shapes(Check):
    """Compare what the header declares with what the reference returns, for these sizes."""

    name = "shapes and dtypes"
    covers = "results have the reference's shapes and dtypes"
    needs_values = False

    def inspect(self, draw: Draw) -> Finding | None:
        """Return a finding for the first result that differs."""
        for slot in draw.slots:
            target = slot.target
            if slot.dtype != target.dtype:
                return Finding(
                    "wrong_dtype",
                    f"`{slot.name}` is declared {slot.dtype}; the reference returns {target.dtype}.",
                    {**draw.where(), "result": slot.name, "got": slot.dtype, "expected": target.dtype},
                )
            if tuple(slot.shape) != tuple(target.shape):
                return Finding(
                    "wrong_shape",
                    f"`{slot.name}` is declared {list(slot.shape)} at {draw.workload.label()}; "
                    f"the reference returns {list(target.shape)}.",
                    {
                        **draw.where(),
                        "result": slot.name,
                        "got": list(slot.shape),
                        "expected": list(target.shape),
                    },
                )
        return None
