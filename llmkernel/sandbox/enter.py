"""Entering the sandbox: as much of it as this system has, and a plain statement of what is missing."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Collection
from dataclasses import asdict, dataclass
from typing import Any

from llmkernel.sandbox import landlock, seccomp
from llmkernel.sandbox.limits import die_with_parent, limit_process
from llmkernel.sandbox.policy import Policy

# What can be left out where a device cannot be made ready inside, in the order in which it is.
PARTS = ("landlock", "seccomp")
_LEFT_OUT = "the device could not be made ready inside it"

_WITHOUT_LANDLOCK = "Files are not confined: the worker could read and write what you can"
_WITHOUT_SECCOMP = "System calls are not confined: the worker could open connections and start processes"


@dataclass(frozen=True)
class Confinement:
    """What holds a process, and what does not.

    Attributes
    ----------
    parts : tuple of str
        Such as ``rlimits``, ``seccomp``, ``Landlock 7``.
    missing : tuple of str
        One sentence each; empty where nothing is missing.
    """

    parts: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return JSON data."""
        return {k: list(v) for k, v in asdict(self).items()}


def enter(policy: Policy, *, without: Collection[str] = ()) -> Confinement:
    """Confine this process, for good, before anything untrusted is near it.

    Parameters
    ----------
    policy : Policy
    without : collection of str
        Members of `PARTS` to leave out.

    Returns
    -------
    Confinement
    """
    die_with_parent()
    parts: list[str] = []
    missing: list[str] = []
    if limit_process(policy.file_bytes):
        parts.append("rlimits")
    else:
        missing.append(f"Memory, files and processor time are not limited: {sys.platform} has no rlimits.")
    why = _LEFT_OUT if "landlock" in without else landlock.why_not()
    if not why:
        try:
            version = landlock.restrict(policy)
            parts.append(f"Landlock {version}")
            if version < landlock.WITH_SIGNALS and policy.starts_programs:
                missing.append(
                    f"Signals to your other processes are not refused: Landlock {version} does not see them."
                )
        except OSError as error:
            why = str(error)
    if why:
        missing.append(f"{_WITHOUT_LANDLOCK}: {why}.")
    why = _LEFT_OUT if "seccomp" in without else _why_no_seccomp()
    if not why:
        try:
            seccomp.worker_filter(starts_programs=policy.starts_programs).install()
            parts.append("seccomp")
        except OSError as error:
            why = str(error)
    if why:
        missing.append(f"{_WITHOUT_SECCOMP}: {why}.")
    return Confinement(tuple(parts), tuple(missing))


def start_no_more_programs(policy: Policy, confinement: Confinement) -> None:
    """Refuse new processes from here on, where filters hold and the policy needs none."""
    if "seccomp" in confinement.parts and not policy.starts_programs:
        with contextlib.suppress(OSError):
            seccomp.no_programs_filter().install()


def _why_no_seccomp() -> str:
    if not sys.platform.startswith("linux"):
        return "only Linux has seccomp"
    return "" if seccomp.is_available() else f"no seccomp filters on this {os.uname().machine} system"
