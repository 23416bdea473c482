"""What a check is: one file, one question about a draw."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from llmkernel.evaluation.draw import Draw, Finding


class Check(ABC):
    """One question about a draw.

    Attributes
    ----------
    name : str
        As the report shows it.
    covers : str
        What a pass means, one clause; the report adds the number of draws.
    needs_values : bool
        False for checks that also look at draws without values: before the run, or after a fault.
    """

    name: ClassVar[str]
    covers: ClassVar[str]
    needs_values: ClassVar[bool] = True

    @abstractmethod
    def inspect(self, draw: Draw) -> Finding | None:
        """Return what is wrong, or None."""

    def warning(self, draws: Sequence[Draw]) -> str | None:
        """Return one sentence that the reader should know although nothing failed."""
        del draws
        return None
