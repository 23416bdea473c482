"""NaN and ±infinity stand where the oracle has them and nowhere else.

Reason: "any NaN fails" refuses references that give NaN, and "both NaN match anywhere" lets a checker be wildcarded
(research/kernels.md items 29 and 30; research/cases.md A10, A13, A14). Where two implementations of the reference itself
disagree about an element, either is right.
"""

from __future__ import annotations

import numpy as np

from llmkernel.evaluation.checks.base import Check
from llmkernel.evaluation.draw import Draw, Finding, examples
from llmkernel.evaluation.error_map import error_map
from llmkernel.evaluation.tolerance import special_mismatch


class SpecialValues(Check):
    """Compare the positions of NaN and infinities."""

    name = "NaN and infinity"
    covers = "NaN and ±infinity stand exactly where the reference has them"

    def inspect(self, draw: Draw) -> Finding | None:
        """Return a finding for the first result with a misplaced special value."""
        for number, slot in enumerate(draw.slots):
            if slot.got is None or slot.target.is_exact:
                continue
            relative, is_sum = slot.target.allowed.relative, slot.target.allowed.reduction_length > 1
            target = slot.target
            wrong = special_mismatch(slot.got, target.oracle, target.at_dtype, relative, is_sum=is_sum)
            if wrong.size:
                others = draw.expected.second_opinion()
                if others is not None:
                    still = special_mismatch(slot.got, others[number], None, relative, is_sum=is_sum)
                    wrong = np.intersect1d(wrong, still)
            if wrong.size:
                shown = examples(slot, wrong)
                first = shown[0]
                return Finding(
                    "non_finite",
                    f"`{slot.name}` has {wrong.size} elements where NaN or infinity is misplaced; {first['index']}: got "
                    f"{first['got']}, expected {first['expected']}, at {draw.workload.label()}.",
                    {
                        **draw.where(),
                        "result": slot.name,
                        "count": int(wrong.size),
                        "total": int(slot.got.size),
                        "examples": shown,
                        "map": error_map(slot.shape, [wrong]),
                    },
                )
        return None
