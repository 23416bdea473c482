"""What a kernel is called on the line of ``%kernels``: NAME, or NAME@N for the N-th version before it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from llmkernel.config import get_config
from llmkernel.errors import RecordError, UsageError
from llmkernel.magics.namespace import is_kernel, user_names
from llmkernel.magics.notebook import notebook_directory
from llmkernel.magics.parsing import shown, suggestion

if TYPE_CHECKING:
    from llmkernel.records.store import RecordStore, StoredRecord


def record_store(ipython: Any) -> RecordStore:
    """Return the records beside the notebook."""
    from llmkernel.records.store import RecordStore

    config = get_config(ipython)
    return RecordStore(notebook_directory(ipython) / Path(config.records_dir).expanduser())


def split_name(text: str) -> tuple[str, str]:
    """Return name and version of NAME or NAME@N; the version in place is an empty text.

    Raises
    ------
    llmkernel.errors.UsageError
        When it is neither.

    Examples
    --------
    >>> split_name("softmax_cuda@2"), split_name("softmax_cuda@0")
    (('softmax_cuda', '2'), ('softmax_cuda', ''))
    """
    name, at, version = text.partition("@")
    if not name.isidentifier() or (at and not version):
        raise UsageError(
            "This is not the name of a kernel.",
            rule="A kernel is written NAME, and an earlier version of it NAME@N as `%kernels history NAME` numbers them.",
            received=shown(text),
            next_step="%kernels lists the names.",
        )
    return name, "" if version.isascii() and version.isdigit() and int(version) == 0 else version


def versions_of(store: RecordStore, name: str) -> list[StoredRecord]:
    """Return the version in place and those before it, newest first: a version's number is its index.

    Raises
    ------
    llmkernel.errors.RecordError
        When there is no kernel of that name.
    """
    return [_in_place(store, name), *store.history(name)]


def find_version(store: RecordStore, name: str, version: str) -> StoredRecord:
    """Return one version of a kernel.

    Parameters
    ----------
    store : RecordStore
    name : str
    version : str
        Its number or its name, as ``history`` shows them; empty for the one in place.

    Raises
    ------
    llmkernel.errors.RecordError
        When there is no such kernel or version.
    """
    if not version:
        return _in_place(store, name)
    found = versions_of(store, name)
    if version.isascii() and version.isdigit() and int(version) < len(found):
        return found[int(version)]
    for stored in found[1:]:
        if stored.version == version:
            return stored
    count = len(found) - 1
    raise RecordError(
        f"There is no version {shown(version)} of {name}.",
        rule=f"Versions before the one in place are numbered 1 to {count}."
        if count
        else "There is only the one in place.",
        received=str(store.directory),
        next_step=f"%kernels history {name} lists the versions.",
    )


def label_of(name: str, version: str) -> str:
    """Return ``NAME`` or ``NAME@N``."""
    return f"{name}@{version}" if version else name


def kernel_names(ipython: Any) -> list[str]:
    """Return the kernels of the notebook, then those that are kept beside it."""
    kept = [stored.record.name for stored in record_store(ipython).list()]
    return list(dict.fromkeys([*user_names(ipython.user_ns, is_kernel), *kept]))


def alive(ipython: Any, name: str) -> Any | None:
    """Return the kernel that the notebook calls `name`, verified or not; None where it is none."""
    value = ipython.user_ns.get(name)
    return value if is_kernel(value) else None


def require_verified(ipython: Any, name: str, why: str) -> Any:
    """Return the verified kernel that the notebook calls `name`.

    Raises
    ------
    llmkernel.errors.UsageError
        When it is not in the notebook, or is unverified; `why` is the rule.
    """
    kernel = alive(ipython, name)
    if kernel is None:
        known = kernel_names(ipython)
        step = (
            f"Run the cell that makes {name}."
            if name in known
            else f"{suggestion(name, known)}%kernels lists them."
        )
        raise UsageError(f"{name} is not a kernel of this notebook.", rule=why, next_step=step)
    if not kernel.report.is_verified:
        raise UsageError(
            f"{name} is unverified.",
            rule=why,
            received=repr(kernel),
            next_step=f"%kernels edit {name} opens its cell: add --from REFERENCE and run it.",
        )
    return kernel


def _in_place(store: RecordStore, name: str) -> StoredRecord:
    found = store.load(name)
    if found is None:
        raise RecordError(
            f"There is no kernel called {name}.",
            received=str(store.directory),
            next_step=f"{suggestion(name, [s.record.name for s in store.list()])}%kernels lists what is there.",
        )
    return found
