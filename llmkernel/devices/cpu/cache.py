"""Where compiled candidates and the runner are kept between sessions."""

from __future__ import annotations

import os
import tempfile
import time
from functools import cache
from pathlib import Path

import platformdirs

MAX_MODULES = 2000
# Younger ones may be in use by another process at this moment.
_SAFE_AGE_SECONDS = 24 * 3600.0


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


def is_kept(library: Path) -> bool:
    """Whether a compiled module is there; it is marked as used, so that it is not the next to go."""
    try:
        os.utime(library)
    except OSError:
        return False
    return True


def prune() -> None:
    """Remove the modules that were not used for longest, where there are too many."""
    ages: list[tuple[float, Path]] = []
    for library in cache_directory().glob("*.so"):
        try:
            ages.append((library.stat().st_mtime, library))
        except OSError:
            continue  # another process was quicker
    if len(ages) <= MAX_MODULES:
        return
    now = time.time()
    for used, library in sorted(ages)[: len(ages) - MAX_MODULES * 3 // 4]:
        if now - used > _SAFE_AGE_SECONDS:
            library.unlink(missing_ok=True)
            library.with_suffix(".json").unlink(missing_ok=True)
