"""Records that ride in the outputs of a notebook, so that one ``.ipynb`` is enough to share."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from llmkernel.errors import RecordError
from llmkernel.records.fields import parse_json
from llmkernel.records.files import read_file
from llmkernel.records.record import MIME_TYPE, Record
from llmkernel.records.store import RecordStore, StoredRecord

_LIMIT_BYTES = 256 << 20


def records_in_notebook(path: str | Path) -> list[tuple[Record, str]]:
    """Return the records in a notebook's outputs with their sources, in cell order.

    Outputs that are not records are passed over, also malformed ones.

    Parameters
    ----------
    path : path-like
        An ``.ipynb`` file of any notebook format, up to 256 MiB.

    Raises
    ------
    llmkernel.errors.RecordError
        When the file cannot be read or is not JSON.
    """
    path = Path(path)
    try:
        content = read_file(path, _LIMIT_BYTES)
    except OSError as error:
        raise RecordError(
            f"{path}: the notebook cannot be read.",
            rule="records are taken from a saved .ipynb file",
            received=error.strerror or str(error),
            next_step="Save the notebook, or name the right file.",
        ) from error
    if MIME_TYPE.encode() not in content:  # nothing to parse: most notebooks are other people's
        return []
    found = []
    for data in _outputs(parse_json(content, str(path))):
        try:
            found.append(Record.from_output(data, where=str(path)))
        except RecordError:
            continue
    return found


def find_in_notebook(path: str | Path, key: str) -> tuple[Record, str] | None:
    """Return the newest record with this key in a notebook's outputs and its source, or None; never an unverified one."""
    records = records_in_notebook(path)
    found = [(r, source) for r, source in records if r.key == key and not r.is_unverified]
    return max(found, key=lambda item: datetime.fromisoformat(item[0].created), default=None)


def restore_from_notebook(path: str | Path, key: str, store: RecordStore) -> StoredRecord | None:
    """Write the folder of a record that a notebook carries; None where it carries none with this key.

    The record is then as any other that came from elsewhere: `RecordStore.reason_to_verify` says why it must
    be verified before it runs.

    Raises
    ------
    llmkernel.errors.RecordError
        When the notebook cannot be read or the folder cannot be written.
    """
    found = find_in_notebook(path, key)
    if found is None:
        return None
    record, source = found
    return store.save(record, source)


def _outputs(notebook: Any) -> Iterator[Any]:
    cells = _list(notebook, "cells")
    for sheet in _list(notebook, "worksheets"):  # notebook format 3
        cells = cells + _list(sheet, "cells")
    for cell in cells:
        for output in _list(cell, "outputs"):
            data = output.get("data") if isinstance(output, dict) else None
            if isinstance(data, dict) and MIME_TYPE in data:
                yield data[MIME_TYPE]


def _list(value: Any, name: str) -> list[Any]:
    items = value.get(name) if isinstance(value, dict) else None
    return items if isinstance(items, list) else []
