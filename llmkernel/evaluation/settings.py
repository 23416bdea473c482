"""What a caller sets for an evaluation, checked before anything runs."""

from __future__ import annotations

import math
import re
from numbers import Real
from typing import Any

from llmkernel.errors import UsageError

_ARCHITECTURE = re.compile(r"sm_\d{2,3}[af]?")


def check_settings(*, timeout: Any = None, tolerance: Any = None, arch: Any = None) -> None:
    """Refuse values that no evaluation can work with; None stands for the default.

    Parameters
    ----------
    timeout : float or None
        Seconds, above 0.
    tolerance : float or None
        Relative error, 0 or more.
    arch : str or None
        Such as ``sm_90a``.

    Raises
    ------
    llmkernel.errors.UsageError
        Names the first that cannot be used.
    """
    if timeout is not None and not (_is_number(timeout) and timeout > 0):
        raise UsageError(
            "The timeout is not a time.",
            rule="timeout is a number of seconds above 0",
            received=repr(timeout)[:80],
            next_step="Leave it out, or give seconds: timeout=20.",
        )
    if tolerance is not None and not (_is_number(tolerance) and tolerance >= 0):
        raise UsageError(
            "The tolerance is not a relative error.",
            rule="tolerance is a finite number of at least 0",
            received=repr(tolerance)[:80],
            next_step="Leave it out to have it derived, or give a relative error: tolerance=1e-3.",
        )
    if arch is not None and not (isinstance(arch, str) and _ARCHITECTURE.fullmatch(arch)):
        raise UsageError(
            "The architecture cannot be understood.",
            rule="it is written as NVIDIA's compilers write it: sm_90a",
            received=repr(arch)[:80],
            next_step="Leave it out for the device's own, or name one such as sm_80 or sm_90a.",
        )


def _is_number(value: Any) -> bool:
    return not isinstance(value, bool) and isinstance(value, Real) and math.isfinite(value)
