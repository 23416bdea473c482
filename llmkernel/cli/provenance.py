"""What a published figure carries: date, commit, package, host, device and versions."""

from __future__ import annotations

import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from llmkernel import __version__


def provenance(device: str, commit: str = "") -> dict[str, Any]:
    """Return the facts, JSON-able.

    Parameters
    ----------
    device : str
        ``cuda`` or ``cpu``.
    commit : str
        What is measured, where the source tree does not know it itself.
    """
    from llmkernel.synthesis.devices import environment_of

    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit or commit_of_tree(),
        "package": __version__,
        "host": {"python": platform.python_version(), "platform": platform.platform()},
        "device": environment_of(device),
    }


def commit_of_tree() -> str:
    """Return the commit of the source tree, or an empty string outside of one."""
    folder = Path(__file__).parent
    try:
        found = subprocess.run(
            ["git", "describe", "--always", "--dirty"],
            cwd=folder,
            capture_output=True,
            text=True,
            check=True,
            timeout=10,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return found.stdout.strip()
