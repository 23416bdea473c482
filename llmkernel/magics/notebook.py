"""Where the notebook lies: its records stand beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def notebook_path(ipython: Any) -> Path | None:
    """Return the saved notebook that `ipython` runs; None for a console, and before it was first saved."""
    path = _told_path(ipython)
    return path if path is not None and path.suffix == ".ipynb" and path.is_file() else None


def notebook_directory(ipython: Any) -> Path:
    """Return the notebook's directory, else the one in which the kernel was started, wherever cells went since."""
    path = _told_path(ipython)
    if path is not None:
        return path.parent
    start = Path(getattr(ipython, "starting_dir", "") or ".")
    return start if start.is_dir() else Path.cwd()


def _told_path(ipython: Any) -> Path | None:
    # Jupyter servers put the path into `__session__` (from JPY_SESSION_NAME), VS Code into `__vsc_ipynb_file__`.
    for name in ("__session__", "__vsc_ipynb_file__"):
        path = ipython.user_ns.get(name)
        # A relative path is relative to the server's root, which a kernel does not know.
        if isinstance(path, str) and Path(path).is_absolute() and Path(path).parent.is_dir():
            return Path(path)
    return None
