"""Where the notebook lies: its records stand beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def notebook_directory(ipython: Any) -> Path:
    """Return the directory of the notebook that `ipython` runs.

    Jupyter servers put the notebook's path into ``__session__`` (from JPY_SESSION_NAME), VS Code into
    ``__vsc_ipynb_file__``. Without either it is where the kernel was started, wherever cells went since.
    """
    for name in ("__session__", "__vsc_ipynb_file__"):
        path = ipython.user_ns.get(name)
        # A relative path is relative to the server's root, which a kernel does not know.
        if isinstance(path, str) and Path(path).is_absolute() and Path(path).parent.is_dir():
            return Path(path).parent
    start = Path(getattr(ipython, "starting_dir", "") or ".")
    return start if start.is_dir() else Path.cwd()
