"""What of the notebook's environment a child process is given: no key, no token, no address of an agent."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

_SECRET_WORDS = ("KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "COOKIE")
# What Python, compilers and the CUDA libraries look for.
_NAMES = """
    HOME PATH USER LOGNAME LANG LANGUAGE TZ TERM PWD SHELL CC CXX CONDA_PREFIX VIRTUAL_ENV SYSTEMROOT SYSTEMDRIVE
    WINDIR COMSPEC PATHEXT PROGRAMFILES PROGRAMDATA APPDATA LOCALAPPDATA USERPROFILE TEMP TMP TMPDIR XDG_CACHE_HOME
    LD_LIBRARY_PATH LD_PRELOAD DYLD_LIBRARY_PATH NUMBER_OF_PROCESSORS PROCESSOR_ARCHITECTURE
"""
_PREFIXES = (
    "LC_",
    "PYTHON",
    "LLMKERNEL_",
    "CUDA",
    "CUPY_",
    "NVIDIA_",
    "NVRTC_",
    "NV_",
    "OMP_",
    "MKL_",
    "OPENBLAS_",
)


def without_secrets(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return an environment without what is named like a secret, for the user's own code."""
    found = os.environ if environment is None else environment
    return {k: v for k, v in found.items() if not any(word in k.upper() for word in _SECRET_WORDS)}


def needed_only(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return what a process that runs untrusted code needs of an environment, and nothing else."""
    names = _NAMES.split()
    return {
        k: v for k, v in without_secrets(environment).items() if k.upper() in names or k.startswith(_PREFIXES)
    }


def with_package(environment: dict[str, str]) -> dict[str, str]:
    """Add what a Python child needs to import what this process can import."""
    # The package may be imported from a source tree that only the notebook's process knows of.
    # Absolute: the child works in another directory.
    paths = [str(Path(p).absolute()) for p in sys.path if p]
    return {**environment, "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths)), "PYTHONUNBUFFERED": "1"}
