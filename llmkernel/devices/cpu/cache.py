"""Where compiled candidates and the runner are kept between sessions."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import platformdirs

MAX_MODULES = 2000
# Younger ones may be in use by another process at this moment.
_SAFE_AGE_SECONDS = 24 * 3600.0
# What a compilation needs at least; the compiler says only in its own words that there is no room.
_ROOM_BYTES = 4 << 20
_WORK = "work-"
# A work folder this young may belong to a process that has not locked it yet.
_YOUNG_SECONDS = 5.0


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
        require_room(directory)
        return True
    except OSError:
        return False


def choose_again() -> None:
    """Let the next `cache_directory` look anew: a directory may fill up, become read-only or disappear."""
    _usable.cache_clear()


def require_room(directory: Path) -> None:
    """Raise OSError where a compilation's files cannot be written to `directory`."""
    with tempfile.TemporaryFile(dir=directory) as file:
        file.write(bytes(1 << 16))
    state = os.statvfs(directory)
    if state.f_blocks and state.f_bavail * state.f_frsize < _ROOM_BYTES:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(directory))


@contextlib.contextmanager
def work_directory() -> Iterator[Path]:
    """Give a folder for one compilation, gone afterwards; those of processes that were killed go, too."""
    cache = cache_directory()
    _sweep(cache)
    work = Path(tempfile.mkdtemp(prefix=_WORK, dir=cache))
    # The lock dies with the process, however that ends, and tells the others that the folder is in use.
    lock = os.open(work, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)
        os.close(lock)


def _sweep(cache: Path) -> None:
    for left in cache.glob(f"{_WORK}*"):
        try:
            if time.time() - left.stat().st_mtime < _YOUNG_SECONDS:
                continue
            lock = os.open(left, os.O_RDONLY)
        except OSError:
            continue  # another process was quicker
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(left, ignore_errors=True)
        except OSError:
            continue  # in use
        finally:
            os.close(lock)


def publish(made: Path, final: Path) -> None:
    """Move a finished file to its place in one step; of several writers any may win."""
    with made.open("rb") as file:
        os.fsync(file.fileno())  # or a crash of the machine may leave an empty file under the final name
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
