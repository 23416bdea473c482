"""``%kernels edit``: a ``%%cuda`` cell below, filled with a kernel's source and the line that judges it again."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from llmkernel.errors import NotAcceptedError, RecordError
from llmkernel.magics.kernel_cell import MakingCell, making_cell, reference_name
from llmkernel.magics.kernel_names import alive, find_version, record_store
from llmkernel.magics.session import get_session

_DEFINED = re.compile(r"(?:^|\n)\s*(?:def\s+(\w+)\s*\(|(\w+)\s*=\s*lambda\b)")


@dataclass(frozen=True)
class EditCell:
    """A cell for the front end to put below.

    Attributes
    ----------
    text : str
    reference : str or None
        What it is judged against; None for a kernel without a reference.
    origin : str
        Whose source it is, in words.
    """

    text: str
    reference: str | None
    origin: str


def edit_cell(ipython: Any, name: str, version: str = "") -> EditCell:
    """Return the cell in which a kernel is changed.

    A candidate that was refused since is what one wants to correct: it comes before the kernel of its name.

    Parameters
    ----------
    ipython : InteractiveShell
    name, version : str
        As `llmkernel.magics.kernel_names.find_version` takes them.

    Raises
    ------
    llmkernel.errors.RecordError
        When there is no such kernel.
    """
    made = making_cell(ipython, name)
    refused = None if version else _refused_source(ipython, made)
    if refused is not None and made is not None:
        return _cell(name, refused, made.reference, made, "the candidate that was refused")
    kernel = alive(ipython, name)
    stored = None
    try:
        stored = find_version(record_store(ipython), name, version)
    except RecordError:
        # A kernel whose record could not be written is in the notebook only.
        if kernel is None or version:
            raise
    holder: Any = stored or kernel
    if made is not None and made.reference is not None:
        reference: str | None = made.reference
    elif kernel is not None and kernel.report.is_verified:
        reference = reference_name(ipython, kernel)
    elif stored is not None and not stored.record.is_unverified:
        reference = _reference_of_record(name, stored.record.problem.reference)
    else:
        reference = None
    return _cell(name, holder.source, reference, made, f"{name}@{version}" if version else name)


def _cell(name: str, source: str, reference: str | None, made: MakingCell | None, origin: str) -> EditCell:
    words = [f"%%cuda {name}", *([f"--from {reference}"] if reference else [])]
    words += made.options if made is not None else ()
    return EditCell(" ".join(words) + "\n" + source.rstrip("\n"), reference, origin)


def _refused_source(ipython: Any, made: MakingCell | None) -> str | None:
    """Return the last candidate of the last cell that tried to make a kernel, where that cell failed."""
    failed = get_session(ipython).failed
    error = failed.error if failed is not None else None
    if made is None or not isinstance(error, NotAcceptedError) or made.cell.error is not error:
        return None
    sources = [a.source for a in error.attempts if a.source]
    return sources[-1] if sources else None


def _reference_of_record(name: str, text: str) -> str:
    """Guess what the notebook calls the reference of a record: what its source defines, else the kernel's own name."""
    found = _DEFINED.search(text)
    return (found[1] or found[2]) if found else name.removesuffix("_cuda")
