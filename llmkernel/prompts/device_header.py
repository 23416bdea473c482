"""What `llmkernel.cuh` offers, taken from the header itself so that a prompt never tells of something else."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import llmkernel.devices

_HEADER = Path(llmkernel.devices.__file__).parent / "include" / "llmkernel.cuh"
_SIGNATURE = re.compile(r"^(?:__device__|using\s)")


@cache
def overview() -> str:
    """Return the names by architecture: the comment at the top of the header."""
    lines = []
    for line in _HEADER.read_text(encoding="utf-8").splitlines():
        if not line.startswith("//"):
            break
        lines.append(line.removeprefix("//").removeprefix(" "))
    return "\n".join(lines).strip()


@cache
def declarations() -> str:
    """Return every function's declaration under its comment, without bodies."""
    kept: list[str] = []
    comment: list[str] = []
    signature: list[str] = []
    for line in _HEADER.read_text(encoding="utf-8").splitlines():
        if signature:
            signature.append(line.strip())
        elif line.startswith("// ----"):
            kept.append(line.rstrip("- "))
            comment = []
        elif line.startswith(("//", "template")):
            comment.append(line)
        elif _SIGNATURE.match(line):
            signature = [line.strip()]
        else:
            comment = []
        code = signature[-1].split("//")[0].rstrip() if signature else ""
        if "{" in code or code.endswith(";"):
            text = " ".join(signature).split("{")[0].split("//")[0].rstrip(" ;")
            kept += [*comment, text.replace("__device__ __forceinline__ ", "") + ";"]
            comment, signature = [], []
    return "\n".join(kept)
