"""Where the notebook lies: its records stand beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def notebook_path(ipython: Any) -> Path | None:
    """Return the path of the notebook that `ipython` runs, where the front end tells it.

    Jupyter servers put it into ``__session__`` (from JPY_SESSION_NAME), VS Code into ``__vsc_ipynb_file__``.
    A console has such a name too, without a file behind it.
    """
    for name in ("__session__", "__vsc_ipynb_file__"):
        path = ipython.user_ns.get(name)
        # A relative path is relative to the server's root, which a kernel does not know.
        if isinstance(path, str) and Path(path).is_absolute() and Path(path).parent.is_dir():
            return Path(path)
    return None


def notebook_directory(ipython: Any) -> Path:
    """Return the notebook's directory, else the one in which the kernel was started, wherever cells went since."""
    path = notebook_path(ipython)
    if path is not None:
        return path.parent
    start = Path(getattr(ipython, "starting_dir", "") or ".")
    return start if start.is_dir() else Path.cwd()
