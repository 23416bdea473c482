"""The driver's errors as faults, and what kernels print."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

from llmkernel.devices.base import Fault
from llmkernel.devices.cuda.driver import DriverError

PRINT_LIMIT = 64 * 1024

# CUresult to (kind, sentence).
_FAULTS = {
    2: ("out_of_memory", "the GPU has not enough free memory"),
    700: ("illegal_address", "a thread read or wrote an address outside every array"),
    701: ("launch_failed", "the launch asks for more registers or shared memory than the GPU has"),
    702: ("timeout", "the driver ended a kernel that ran too long"),
    710: ("trap", "an assert() in the kernel failed"),
    714: ("stack_overflow", "a thread's stack overflowed or is corrupt"),
    715: ("trap", "a thread ran an illegal instruction, as __trap() does"),
    716: ("misaligned_address", "a thread accessed an address that is not a multiple of the access's size"),
    717: (
        "illegal_address",
        "a thread used an address of another memory space, such as a global one for shared memory",
    ),
    718: ("launch_failed", "a thread jumped to an address that holds no code"),
    719: ("launch_failed", "the kernel ended abnormally"),
    720: ("launch_failed", "a cooperative launch has more blocks than the GPU holds at a time"),
    912: ("launch_failed", "the GPU cannot place a cluster of this size"),
}
_TRAP = re.compile(r"__trap\s*\(|\btrap;")
_ASSERTION = re.compile(
    r":(?P<line>\d+): .*?block: \[(?P<block>\d+,\d+,\d+)\], thread: \[(?P<thread>\d+,\d+,\d+)\] "
    r"Assertion `(?P<text>.*?)` failed"
)


def fault_from_error(error: DriverError, kernel: str, source: str, printed: str = "") -> Fault:
    """Describe a failed launch or synchronisation.

    Parameters
    ----------
    kernel : str
        Name expression of the kernel that was running.
    source : str
        The candidate: a general failure of one that calls ``__trap()`` is a trap.
    printed : str
        What was printed, in which a failed assertion names its line, block and thread.
    """
    kind, sentence = _FAULTS.get(error.code, ("launch_failed", f"the driver reports {error.name}"))
    if kind == "launch_failed" and error.is_context_lost and _TRAP.search(source):
        kind, sentence = "trap", "a thread called __trap()"
    details: dict[str, Any] = {
        "error": error.name,
        "call": error.call,
        "is_context_lost": error.is_context_lost,
    }
    assertion = _ASSERTION.search(printed) if error.code == 710 else None
    if assertion:
        details["line"] = int(assertion["line"])
        details["block"] = [int(n) for n in assertion["block"].split(",")]
        details["thread"] = [int(n) for n in assertion["thread"].split(",")]
        sentence = f"assert({assertion['text']}) failed on line {assertion['line']}"
    where = f" in {kernel}" if kernel else ""
    return Fault(kind, f"{sentence[0].upper()}{sentence[1:]}{where}.", kernel, details)


class Printed:
    """What went to the process's standard streams meanwhile; `text` is set at the end."""

    text: str = ""


@contextlib.contextmanager
def captured_output(*, is_wanted: bool) -> Iterator[Printed]:
    """Collect what the driver writes to file descriptors 1 and 2, up to 64 KiB.

    The driver prints with C's stdio, behind Python's back: only the descriptors can be redirected. Not for
    use while other threads write to standard output.
    """
    printed = Printed()
    if not is_wanted or sys.platform == "win32":
        yield printed
        return
    sys.stdout.flush()
    sys.stderr.flush()
    libc = ctypes.CDLL(None)
    with tempfile.TemporaryFile() as file, contextlib.ExitStack() as restore:
        for descriptor in (1, 2):
            kept = os.dup(descriptor)
            restore.callback(os.close, kept)
            restore.callback(os.dup2, kept, descriptor)
            os.dup2(file.fileno(), descriptor)
        restore.callback(libc.fflush, None)
        try:
            yield printed
        finally:
            libc.fflush(None)
            file.seek(0)
            data = file.read(PRINT_LIMIT + 1)
            printed.text = data[:PRINT_LIMIT].decode("utf-8", "replace")
            if len(data) > PRINT_LIMIT:
                printed.text += "\n… (output cut at 64 KiB)"
