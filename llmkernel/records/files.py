"""File operations that survive a crash: locks, whole sets of files, and errors that say what to do."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from llmkernel.errors import RecordError

_LOCK_SECONDS = 20.0
_POLL_SECONDS = 0.02


def read_file(path: Path, limit_bytes: int) -> bytes:
    """Return the contents of a regular file of at most `limit_bytes`.

    Raises
    ------
    llmkernel.errors.RecordError
        For a link, a pipe, a device or a file that is too large: a stranger's folder may hold any of them.
    OSError
        When it cannot be read.
    """
    found = path.lstat()
    if not stat.S_ISREG(found.st_mode):
        raise RecordError(
            f"{path}: not a regular file.",
            rule="the files of a record are regular files, not links or devices",
            next_step="Replace it by a copy of the file that it points to.",
        )
    with path.open("rb") as file:
        content = file.read(limit_bytes + 1)
    if len(content) > limit_bytes:
        raise RecordError(
            f"{path}: too large for a file of a record.",
            rule=f"at most {limit_bytes} bytes",
            next_step="Restore it from version control, or delete the folder and generate the kernel again.",
        )
    return content


def write_file(path: Path, content: bytes) -> None:
    """Write a new file and make it durable."""
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def sync_directory(path: Path) -> None:
    """Make renames in `path` durable, where the system has such an operation."""
    if os.name == "nt":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:  # some network file systems cannot sync a directory
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EBADF):
            raise
    finally:
        os.close(descriptor)


def remove_tree(path: Path) -> None:
    """Remove a folder as far as possible; what stays is removed by the next writer."""
    shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def locked(directory: Path, *, is_shared: bool) -> Iterator[None]:
    """Hold the lock of `directory` against other processes and threads.

    The lock is advisory and dies with its process. File systems without locks are used without one: single
    files are still replaced atomically there.

    Raises
    ------
    llmkernel.errors.RecordError
        When another process holds it for long.
    """
    try:
        descriptor = _open_lock(directory)
    except OSError:  # a read-only directory on Windows, or it is gone: the operation itself will say so
        yield
        return
    try:
        deadline = time.monotonic() + _LOCK_SECONDS
        while not _try_lock(descriptor, is_shared=is_shared):
            if time.monotonic() > deadline:
                raise RecordError(
                    f"{directory}: another process is writing here and does not finish.",
                    rule=f"a writer holds the folder for less than {_LOCK_SECONDS:.0f} s",
                    next_step="Close the other notebook that uses this folder, then run the cell again.",
                )
            time.sleep(_POLL_SECONDS)
        yield
    finally:
        os.close(descriptor)  # releases the lock


if sys.platform == "win32":
    import msvcrt

    def _open_lock(directory: Path) -> int:
        return os.open(directory / ".lock", os.O_RDWR | os.O_CREAT)

    def _try_lock(descriptor: int, *, is_shared: bool) -> bool:
        del is_shared  # there are exclusive locks only
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _open_lock(directory: Path) -> int:
        # The directory itself carries the lock, so that nothing is left beside the records.
        return os.open(directory, os.O_RDONLY)

    def _try_lock(descriptor: int, *, is_shared: bool) -> bool:
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:  # no locks on this file system
            return True
        return True
