"""What a folder looks like, so that any change of it shows."""

from __future__ import annotations

import hashlib
from pathlib import Path


def snapshot(folder: Path) -> dict[str, tuple[object, ...]]:
    """Return kind, mode, owner, date and content of everything below a folder."""
    found = {}
    for path in sorted([folder, *folder.rglob("*")]):
        state = path.lstat()
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        found[str(path)] = (state.st_mode, state.st_uid, state.st_gid, state.st_mtime_ns, content)
    return found
