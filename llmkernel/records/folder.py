"""One record's folder: three files that change together, and their history.

A save must leave the old or the new set, wherever it is interrupted, although no file system renames three
files at once. The new set is written to a folder of its own; renaming that to ``.next`` is the moment at
which it counts. Then its files move into place, ``record.json`` last. Whoever finds a ``.next`` that still
holds a ``record.json`` takes the new set: each file from ``.next`` if it is still there, else from its
place.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from llmkernel.errors import RecordError
from llmkernel.records.files import read_file, remove_tree, sync_directory, write_file
from llmkernel.records.record import SOURCE_FILE, Record, check_source, normalize_source, source_digest

RECORD_FILE = "record.json"
TRANSCRIPT_FILE = "transcript.jsonl"
HISTORY_FOLDER = "history"
HISTORY_LIMIT = 10

# The record comes last: it decides which set counts.
_FILES = (SOURCE_FILE, TRANSCRIPT_FILE, RECORD_FILE)
_NEXT = ".next"
_PENDING = ".pending-"
_LIMIT_BYTES = 32 << 20


@dataclass(frozen=True)
class RecordFiles:
    """The contents of a record's folder.

    Attributes
    ----------
    record : Record
    source : str
        The candidate as it is on disk, which may have been edited.
    transcript : str
        JSON lines; empty when there is none.
    """

    record: Record
    source: str
    transcript: str = ""

    @property
    def is_edited(self) -> bool:
        """Whether the source is not the one that the record was made of."""
        return source_digest(self.source) != self.record.candidate_digest


def read_folder(folder: Path) -> RecordFiles:
    """Read the set of files that counts.

    Raises
    ------
    llmkernel.errors.RecordError
        When a file is malformed.
    OSError
        When one cannot be read; FileNotFoundError where there is no record.
    """
    record = Record.from_json(
        read_file(_place(folder, RECORD_FILE), _LIMIT_BYTES), where=str(folder / RECORD_FILE)
    )
    source = _read_text(folder, SOURCE_FILE)
    check_source(source, str(folder / SOURCE_FILE))
    return RecordFiles(record, source)


def mentions(folder: Path, key: str) -> bool:
    """Whether the record's text holds `key`: most records of a directory need not be parsed to find one."""
    try:
        return key.encode() in read_file(_place(folder, RECORD_FILE), _LIMIT_BYTES)
    except (OSError, RecordError):
        return False


def read_transcript(folder: Path) -> str:
    """Return the transcript, or an empty string where there is none."""
    try:
        return _read_text(folder, TRANSCRIPT_FILE)
    except FileNotFoundError:
        return ""


def write_folder(folder: Path, files: RecordFiles) -> None:
    """Replace the set of files in `folder`; the set that was there goes to its history.

    Raises
    ------
    OSError
        When it cannot be written. The old set is then still the one that counts, or the new one already is.
    """
    folder.mkdir(parents=True, exist_ok=True)
    recover(folder)
    pending = folder / f"{_PENDING}{secrets.token_hex(4)}"
    try:
        pending.mkdir()
        write_file(pending / SOURCE_FILE, normalize_source(files.source).encode())
        write_file(pending / TRANSCRIPT_FILE, files.transcript.encode("utf-8", "backslashreplace"))
        write_file(pending / RECORD_FILE, files.record.to_json().encode())
        sync_directory(pending)
        _keep_in_history(folder)
        pending.replace(folder / _NEXT)  # from here on the new set counts
    except BaseException:
        remove_tree(pending)
        raise
    sync_directory(folder)
    recover(folder)
    sync_directory(folder.parent)


def recover(folder: Path) -> None:
    """Finish what an interrupted writer began, and remove what it never finished."""
    waiting = folder / _NEXT
    if _is_committed(folder):
        for name in _FILES:
            if (waiting / name).exists():
                (waiting / name).replace(folder / name)
        sync_directory(folder)
    for leftover in (waiting, *folder.glob(f"{_PENDING}*"), *(folder / HISTORY_FOLDER).glob(f"{_PENDING}*")):
        if leftover.is_symlink():
            leftover.unlink()
        elif leftover.exists():
            remove_tree(leftover)


def history_folders(folder: Path) -> list[Path]:
    """Return the folders of earlier versions, newest first."""
    history = folder / HISTORY_FOLDER
    if history.is_symlink() or not history.is_dir():
        return []
    return sorted((p for p in history.iterdir() if p.is_dir() and not p.name.startswith(".")), reverse=True)


def _place(folder: Path, name: str) -> Path:
    waiting = folder / _NEXT / name
    return waiting if _is_committed(folder) and waiting.exists() else folder / name


def _is_committed(folder: Path) -> bool:
    """Whether an interrupted writer left a set that counts; never one that a link points to."""
    waiting = folder / _NEXT
    return not waiting.is_symlink() and (waiting / RECORD_FILE).exists()


def _read_text(folder: Path, name: str) -> str:
    content = read_file(_place(folder, name), _LIMIT_BYTES)
    try:
        return normalize_source(content.decode())
    except UnicodeDecodeError as error:
        raise RecordError(
            f"{folder / name}: not text.",
            rule="the files of a record are UTF-8",
            received=str(error),
            next_step="Save it as UTF-8, or restore it from version control.",
        ) from error


def _keep_in_history(folder: Path) -> None:
    """Copy the set that is in place to the history, whatever state it is in: an edit is never lost."""
    contents = {}
    for name in _FILES:
        try:
            contents[name] = read_file(folder / name, _LIMIT_BYTES)
        except (OSError, RecordError):
            continue
    if SOURCE_FILE not in contents:
        return
    history = folder / HISTORY_FOLDER
    if history.is_symlink():
        history.unlink()  # what it points to is not ours to write
    history.mkdir(exist_ok=True)
    digest = hashlib.sha256(b"".join(contents[name] for name in _FILES if name in contents)).hexdigest()[:8]
    target = history / f"{_version_time(folder, contents)}-{digest}"
    if not target.exists():
        pending = history / f"{_PENDING}{secrets.token_hex(4)}"
        try:
            pending.mkdir()
            for name, content in contents.items():
                write_file(pending / name, content)
            sync_directory(pending)
            pending.replace(target)
        except BaseException:
            remove_tree(pending)
            raise
        sync_directory(history)
    for surplus in history_folders(folder)[HISTORY_LIMIT:]:
        remove_tree(surplus)


def _version_time(folder: Path, contents: dict[str, bytes]) -> str:
    """Return when the version was made, as a name that sorts: from its record, else from the file."""
    try:
        made = datetime.fromisoformat(Record.from_json(contents.get(RECORD_FILE, b"")).created)
    except RecordError:
        made = datetime.fromtimestamp((folder / SOURCE_FILE).stat().st_mtime, UTC)
    return made.strftime("%Y%m%dT%H%M%S.%fZ")
