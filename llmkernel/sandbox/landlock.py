"""File access, TCP and signals through Landlock, by way of `landlockpy`."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Any

from llmkernel.sandbox.policy import Policy

# Version 1 cannot allow a file to be moved to another directory, which is how caches are written.
OLDEST = 2
# From here on connections and signals to processes outside are refused too.
WITH_SIGNALS = 6
_WITH_ALL_THREADS = 8


def version() -> int:
    """Return the version of the kernel's Landlock; 0 where it, or the binding, is absent."""
    binding = _binding()
    return 0 if binding is None else int(binding.abi_version())


def why_not() -> str:
    """Return why this process cannot enter Landlock; empty where it can."""
    if not why_unsupported() and version() < _WITH_ALL_THREADS and _thread_count() > 1:
        return "threads were running before it could be entered"
    return why_unsupported()


def why_unsupported() -> str:
    """Return why there is no Landlock on this system; empty where there is."""
    if platform.system() != "Linux":
        return "only Linux has Landlock"
    if _binding() is None:
        return "the package landlockpy is not installed"
    found = version()
    if found == 0:
        return "this kernel, or the container, has no Landlock"
    if found < OLDEST:
        return f"this kernel's Landlock is version {found}; {OLDEST} is needed"
    return ""


def restrict(policy: Policy) -> int:
    """Put this process under `policy`, for good; return the version that did it.

    Raises
    ------
    OSError
        The kernel refuses.
    """
    binding: Any = _binding()
    fs = binding.AccessFS
    read = fs.READ_FILE | fs.READ_DIR | fs.EXECUTE
    change = (
        fs.WRITE_FILE | fs.TRUNCATE | fs.MAKE_REG | fs.MAKE_DIR | fs.MAKE_SYM | fs.REMOVE_FILE | fs.REMOVE_DIR
    )
    # Truncating a device means nothing, but `fopen` asks for it.
    use = fs.READ_FILE | fs.WRITE_FILE | fs.IOCTL_DEV | fs.TRUNCATE
    own = read | change | fs.REFER
    with binding.Ruleset(scoped=binding.Scope.SIGNAL | binding.Scope.ABSTRACT_UNIX_SOCKET) as rules:
        for paths, rights in ((policy.readable, read), (policy.writable, own), (policy.devices, use)):
            for path in paths:
                _allow(rules, path, rights, fs)
        rules.restrict(binding.RestrictFlag.TSYNC)
    return int(rules.abi_version)


def _allow(rules: Any, path: Path, rights: Any, fs: Any) -> None:
    if not path.exists():
        return
    # A rule for a file takes no rights that only directories have.
    kept = rights if path.is_dir() else rights & ~(fs.READ_DIR | fs.REFER | _making(fs))
    rules.allow_path(path, kept)


def _making(fs: Any) -> Any:
    return fs.MAKE_REG | fs.MAKE_DIR | fs.MAKE_SYM | fs.REMOVE_FILE | fs.REMOVE_DIR


def _binding() -> Any | None:
    try:
        import landlockpy
    except ImportError:
        return None
    return landlockpy


def _thread_count() -> int:
    try:
        return sum(1 for _ in Path("/proc/self/task").iterdir())
    except OSError:
        return 1
