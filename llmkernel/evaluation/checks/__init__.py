"""The checks, in the order in which a failing draw is explained.

Adding a check is adding a file and its line here.
"""

from __future__ import annotations

from llmkernel.evaluation.checks.base import Check
from llmkernel.evaluation.checks.faults import Faults
from llmkernel.evaluation.checks.guard_bands import GuardBands
from llmkernel.evaluation.checks.inputs_unchanged import InputsUnchanged
from llmkernel.evaluation.checks.repeatable import Repeatable
from llmkernel.evaluation.checks.shapes import Shapes
from llmkernel.evaluation.checks.special_values import SpecialValues
from llmkernel.evaluation.checks.thread_order import ThreadOrder
from llmkernel.evaluation.checks.values import Values
from llmkernel.evaluation.checks.written import Written

DRAW_CHECKS: tuple[Check, ...] = (
    Shapes(),
    GuardBands(),
    Faults(),
    InputsUnchanged(),
    Written(),
    Repeatable(),
    ThreadOrder(),
    SpecialValues(),
    Values(),
)

__all__ = ["DRAW_CHECKS", "Check"]
