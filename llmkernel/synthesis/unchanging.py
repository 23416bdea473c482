"""What every kernel object shares: it does not change, so that a copy of it is itself."""

from __future__ import annotations

from typing import Any, Self


class Unchanging:
    """A value that is compiled once and never changes."""

    def __copy__(self) -> Self:
        """Return the kernel itself: it does not change."""
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return the kernel itself: it does not change."""
        return self
