"""Folder names that are safe on every file system, for names that may come from a stranger's notebook."""

from __future__ import annotations

import hashlib
import re
import unicodedata

_MAX_LENGTH = 64
_RESERVED = frozenset(
    [
        "con",
        "prn",
        "aux",
        "nul",
        "conin",
        "conout",
        *(f"{port}{n}" for port in ("com", "lpt") for n in range(10)),
    ]
)


def safe_folder_name(name: str) -> str:
    """Return the folder name for a kernel called `name`.

    Lower-case ASCII identifiers keep their name. Everything else (upper case, which collides on Windows and
    macOS; device names that Windows reserves; other scripts; separators; too long) becomes a readable part
    and eight hex digits of its SHA-256, so that two names never share a folder. The result holds only ``a-z
    0-9 _ -``.

    Examples
    --------
    >>> safe_folder_name("row_softmax")
    'row_softmax'
    >>> safe_folder_name("../../etc/passwd").startswith("etc_passwd-")
    True
    """
    name = unicodedata.normalize("NFC", name)
    if re.fullmatch(r"[a-z_][a-z0-9_]*", name) and len(name) <= _MAX_LENGTH and name not in _RESERVED:
        return name
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    readable = re.sub(r"[^a-z0-9]+", "_", plain).strip("_")[: _MAX_LENGTH - 9] or "kernel"
    return f"{readable}-{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"
