"""Run a part of a test as an ordinary user: root may write everywhere, so nothing would be tested."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

NOBODY = 65534


@contextmanager
def open_directory() -> Iterator[Path]:
    """Yield a temporary directory that an ordinary user can reach and write."""
    directory = Path(tempfile.mkdtemp())
    directory.chmod(0o777)
    try:
        yield directory
    finally:
        shutil.rmtree(directory)


def run_unprivileged(function: Callable[[], None]) -> None:
    """Call `function`; where this process is root, in a child that is not."""
    if os.name == "nt":
        pytest.skip("directories have no such mode there")
    if os.geteuid() != 0:
        function()
        return
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            function()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0, "see the traceback of the child on stderr"
