"""Where compiled candidates and the runner are kept between sessions."""

from __future__ import annotations

import os
import tempfile
from functools import cache
from pathlib import Path

import platformdirs


def cache_directory() -> Path:
    """Return a directory that this process can write to, private to the user.

    `LLMKERNEL_CACHE_DIR` says where; else it is in the user's cache directory, or in the temporary one where that
    cannot be written.
    """
    base = os.environ.get("LLMKERNEL_CACHE_DIR") or platformdirs.user_cache_dir("llmkernel", appauthor=False)
    return _usable(Path(base) / "cpu")


@cache
def _usable(wanted: Path) -> Path:
    fallback = Path(tempfile.gettempdir()) / f"llmkernel-cpu-{os.getuid()}"
    for directory in (wanted, fallback):
        if _is_usable(directory):
            return directory
    # Someone else owns the fallback: take a directory nobody can have prepared.
    return Path(tempfile.mkdtemp(prefix="llmkernel-cpu-"))


def _is_usable(directory: Path) -> bool:
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if directory.stat().st_uid != os.getuid():
            return False
        with tempfile.TemporaryFile(dir=directory):
            return True
    except OSError:
        return False


def publish(made: Path, final: Path) -> None:
    """Move a finished file to its place in one step; of several writers any may win."""
    made.replace(final)
