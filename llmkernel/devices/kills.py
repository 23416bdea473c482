"""Why a process was killed: for want of memory, or by someone else.

Signal 9 says nothing of its reason. Linux counts the processes that it ended for want of memory, of a control group and of
the whole system: only a count that grew is evidence.
"""

from __future__ import annotations

import signal
from pathlib import Path

from llmkernel.devices.base import Fault

# Whoever sends these is neither a kernel that went wrong nor its device.
_FROM_OUTSIDE = ("SIGKILL", "SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT")


def memory_kills() -> int | None:
    """Return how many processes the system has ended for want of memory; None where it does not say."""
    for path in (_group_events(), Path("/proc/vmstat")):
        try:
            for line in path.read_text().splitlines() if path is not None else ():
                if line.startswith("oom_kill "):
                    return int(line.split()[1])
        except (OSError, ValueError, IndexError):
            continue
    return None


def is_kill(exit_code: int) -> bool:
    """Whether a process was ended from outside, as `subprocess.Popen.returncode` tells it."""
    return -exit_code in [getattr(signal, name, 0) for name in _FROM_OUTSIDE]


def fault_of_kill(what: str, exit_code: int, kills_before: int | None) -> Fault:
    """Return the fault of a process that `is_kill`: ``out_of_memory`` on evidence, else ``killed``.

    Parameters
    ----------
    what : str
        The process, such as ``The worker``.
    kills_before : int or None
        `memory_kills` before it was asked to do anything.
    """
    number = -exit_code
    by = f"{signal.Signals(number).name}, signal {number}"
    details = {"signal": number}
    now = memory_kills()
    if now is None or kills_before is None:
        text = f"{what} was killed ({by}); whether for its memory, this system does not say."
        return Fault("killed", text, details=details)
    if number == 9 and now > kills_before:
        text = f"{what} was ended by the system for want of memory ({by})."
        return Fault("out_of_memory", text, details=details)
    text = f"{what} was killed from outside ({by}), and not for want of memory."
    return Fault("killed", text, details=details)


def _group_events() -> Path | None:
    """Return the file in which the control group of this process counts, where there is one."""
    try:
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            if line.startswith("0::/"):
                return Path("/sys/fs/cgroup") / line[4:] / "memory.events"
    except OSError:
        pass
    return None
