"""What this machine verified itself.

A record travels: in a repository, in a notebook, by mail. That it says "passed, on this very GPU" is a
claim. The ledger lies in the user's cache directory, where no notebook puts anything, and turns the claim
into a fact.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import platformdirs

from llmkernel import __version__
from llmkernel.records.fields import canonical_json
from llmkernel.records.record import Record


class VerifiedLedger:
    """Records that were verified on this machine, by digest of record, environment and package version.

    Parameters
    ----------
    directory : path-like, optional
        Default: ``verified`` in the user's cache directory, which ``LLMKERNEL_CACHE_DIR`` overrides.
    """

    def __init__(self, directory: str | Path | None = None) -> None:
        cache = os.environ.get("LLMKERNEL_CACHE_DIR") or platformdirs.user_cache_dir(
            "llmkernel", appauthor=False
        )
        self.directory = Path(directory or Path(cache) / "verified")

    def contains(self, record: Record, environment: Mapping[str, Any]) -> bool:
        """Whether this very record was verified in this very environment by this version of the package."""
        try:
            return self._entry(record, environment).is_file()
        except OSError:
            return False

    def add(self, record: Record, environment: Mapping[str, Any]) -> None:
        """Note that it was; where that cannot be written, the record is merely verified again next time."""
        try:
            entry = self._entry(record, environment)
            entry.parent.mkdir(parents=True, exist_ok=True)
            entry.touch()
        except OSError:
            return

    def _entry(self, record: Record, environment: Mapping[str, Any]) -> Path:
        content = canonical_json([record.digest, flat(environment), __version__])
        return self.directory / hashlib.sha256(content).hexdigest()


def flat(environment: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Return the leaves of a nested environment by dotted name, as text.

    Examples
    --------
    >>> flat({"device": {"arch": "sm_90a"}, "driver": 13})
    {'device.arch': 'sm_90a', 'driver': '13'}
    """
    leaves: dict[str, str] = {}
    for name, value in environment.items():
        if isinstance(value, Mapping):
            leaves |= flat(value, f"{prefix}{name}.")
        else:
            leaves[f"{prefix}{name}"] = str(list(value) if isinstance(value, tuple) else value)
    return leaves


def environment_differences(recorded: Mapping[str, Any], current: Mapping[str, Any]) -> tuple[str, ...]:
    """Return one sentence part for each value that is not the same in both environments, by name.

    Examples
    --------
    >>> environment_differences({"driver": "580.1"}, {"driver": "590.2"})
    ('driver was 580.1, is 590.2',)
    """
    before, now = flat(recorded), flat(current)
    return tuple(
        f"{name} was {before.get(name, 'not recorded')}, is {now.get(name, 'unknown')}"
        for name in sorted(before.keys() | now.keys())
        if before.get(name) != now.get(name)
    )
