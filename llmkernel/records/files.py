"""File operations that survive a crash: locks, whole sets of files, and errors that say what to do."""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import shutil
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import ParamSpec, TypeVar

from llmkernel.errors import RecordError

_LOCK_SECONDS = 20.0
_POLL_SECONDS = 0.02
# What is left of an operation that was interrupted takes milliseconds, unless a disk hangs.
_FINISH_SECONDS = 5.0

P = ParamSpec("P")
T = TypeVar("T")


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


def uninterrupted(function: Callable[P, T]) -> Callable[P, T]:
    """Have `function` run in a thread of its own where it is called in the main thread.

    Ctrl-C raises in the main thread wherever that is, also just before a lock is released: it would then stay held for as
    long as the notebook keeps the traceback. Another thread is never interrupted. An interrupt is raised once the
    function has ended, or after a few seconds; the function is then finished all the same.
    """

    @functools.wraps(function)
    def call(*arguments: P.args, **options: P.kwargs) -> T:
        if threading.current_thread() is not threading.main_thread():
            return function(*arguments, **options)
        results: list[T] = []
        errors: list[BaseException] = []
        ended = threading.Event()

        def run() -> None:
            try:
                results.append(function(*arguments, **options))
            except BaseException as error:  # noqa: BLE001 - raised again where the caller waits
                errors.append(error)
            finally:
                ended.set()

        thread = threading.Thread(target=run, name="llmkernel-records")
        try:
            thread.start()
            ended.wait()
        except BaseException as error:
            if isinstance(error, RuntimeError) and thread.ident is None:
                return function(*arguments, **options)  # no more threads can be started
            if thread.ident is not None:
                ended.wait(_FINISH_SECONDS)
            raise
        if errors:
            raise errors.pop()  # what stays in the list would keep its own frame alive
        return results[0]

    return call


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
