"""Records on disk, beside the notebook: ``kernels/<name>/{kernel.cu, record.json, transcript.jsonl}``."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from llmkernel.errors import RecordError
from llmkernel.records.files import locked, uninterrupted
from llmkernel.records.folder import (
    RECORD_FILE,
    RecordFiles,
    history_folders,
    mentions,
    read_folder,
    read_transcript,
    write_folder,
)
from llmkernel.records.ledger import VerifiedLedger, environment_differences
from llmkernel.records.names import safe_folder_name
from llmkernel.records.record import Record, check_source, normalize_source, source_digest


@dataclass(frozen=True)
class StoredRecord:
    """A record as it was found on disk.

    Attributes
    ----------
    record : Record
    source : str
        The candidate as it is on disk.
    folder : pathlib.Path
        Where it lies.
    is_edited : bool
        The candidate is not the one that the record was made of: it is a new candidate.
    is_from_history : bool
        An earlier version, not the one in place.
    version : str
        Name of the version in the history; empty for the one in place.
    """

    record: Record
    source: str
    folder: Path
    is_edited: bool = False
    is_from_history: bool = False
    version: str = ""


class RecordStore:
    """The records of one directory.

    Several processes may use the same directory: a reader sees a whole set of files, the last writer wins,
    and what it replaced is in the history.

    Parameters
    ----------
    directory : path-like
        Usually ``kernels`` beside the notebook; created by the first save.
    ledger : VerifiedLedger, optional
        Where this machine keeps what it verified itself; default: the user's cache directory.
    """

    def __init__(self, directory: str | Path, *, ledger: VerifiedLedger | None = None) -> None:
        self.directory = Path(directory)
        self.ledger = ledger or VerifiedLedger()

    def folder(self, name: str) -> Path:
        """Return the folder of the kernel called `name`; always directly under `directory`."""
        return self.directory / safe_folder_name(name)

    @uninterrupted
    def load(self, name: str) -> StoredRecord | None:
        """Return the record in place for `name`, or None where there is none.

        Raises
        ------
        llmkernel.errors.RecordError
            When it cannot be read.
        """
        return self._read(self.folder(name))

    @uninterrupted
    def find(
        self, key: str, *, name: str | None = None, provider: str | None = None, model: str | None = None
    ) -> StoredRecord | None:
        """Return the record of a problem.

        Looks at what is in place first (at `name` before the others), then in the histories, newest first, where
        edited versions are passed over. Folders that cannot be read are passed over too; `unreadable` names them. So are
        kernels that were never verified.

        Parameters
        ----------
        key : str
            `llmkernel.records.record.record_key` of the problem.
        name : str, optional
            Preferred where several kernels solve the same problem.
        provider, model : str, optional
            Pass over the records of others.
        """

        def fits(stored: StoredRecord) -> bool:
            record = stored.record
            if record.is_unverified:
                return False
            return record.key == key and provider in (None, record.provider) and model in (None, record.model)

        folders = self._folders()
        if name is not None:
            preferred = self.folder(name)
            folders = tuple(sorted(folders, key=lambda folder: folder != preferred))
        for folder in folders:
            found = self._read_quietly(folder, key)
            if found is not None and fits(found):
                return found
        for folder in folders:
            for found in self._history(folder, key):
                if fits(found) and not found.is_edited:
                    return found
        return None

    @uninterrupted
    def list(self) -> tuple[StoredRecord, ...]:
        """Return the records in place, by folder name; those that cannot be read are left out."""
        found = (self._read_quietly(folder) for folder in self._folders())
        return tuple(stored for stored in found if stored is not None)

    @uninterrupted
    def unreadable(self) -> tuple[RecordError, ...]:
        """Return one error for each folder whose record cannot be read."""
        errors = []
        for folder in self._folders():
            try:
                self._read(folder)
            except RecordError as error:
                errors.append(error)
        return tuple(errors)

    @uninterrupted
    def history(self, name: str) -> tuple[StoredRecord, ...]:
        """Return the earlier versions of `name`, newest first."""
        return tuple(self._history(self.folder(name)))

    @uninterrupted
    def transcript(self, stored: StoredRecord) -> str:
        """Return the transcript beside a record, as JSON lines; empty when there is none."""
        try:
            return read_transcript(stored.folder)
        except OSError as error:
            raise _unreadable(stored.folder, error) from error

    @uninterrupted
    def save(
        self, record: Record, source: str, transcript: str = "", *, is_verified_here: bool = False
    ) -> StoredRecord:
        """Write a record; the version that was there goes to its history.

        Interrupted at any moment, the old or the new version is there, whole.

        Parameters
        ----------
        record : Record
        source : str
            The accepted candidate, whose digest the record holds.
        transcript : str
            JSON lines (`llmkernel.records.transcript.transcript_lines`).
        is_verified_here : bool
            This machine just verified it in `record.environment`: a later replay need not do so again.

        Raises
        ------
        llmkernel.errors.RecordError
            When it cannot be written; what was there before is untouched, and the caller still has its
            kernel.
        """
        source = normalize_source(source)
        folder = self.folder(record.name)
        check_source(source, str(folder))
        if source_digest(source) != record.candidate_digest:
            raise RecordError(
                f"{record.name}: this source is not the one that the record was made of.",
                rule="candidate_digest is source_digest(source)",
                next_step="Make the record from the source that was accepted.",
            )
        if folder.is_symlink():
            raise RecordError(
                f"{folder}: a link, not a folder.",
                rule="records are written into folders of their own",
                next_step="Remove the link, or choose another directory for records.",
            )
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with locked(folder, is_shared=False):
                write_folder(folder, RecordFiles(record, source, transcript))
        except OSError as error:
            raise _unwritable(folder, error) from error
        except (TypeError, ValueError) as error:
            raise RecordError(
                f"{record.name}: the record holds something that JSON cannot.",
                rule="environment, report, domain and usage are JSON data",
                received=str(error),
                next_step="Report it: whatever was accepted here should be storable.",
            ) from error
        if is_verified_here and not record.is_unverified:
            self.ledger.add(record, record.environment)
        return StoredRecord(record, source, folder)

    @uninterrupted
    def rollback(self, name: str, version: str) -> StoredRecord:
        """Put an earlier version back in place; the one that was there goes to the history.

        Raises
        ------
        llmkernel.errors.RecordError
            When there is no such version or it cannot be read or written.
        """
        for stored in self.history(name):
            if stored.version == version:
                record = stored.record
                if stored.is_edited:
                    record = replace(record, candidate_digest=source_digest(stored.source), report={})
                return self.save(record, stored.source, self.transcript(stored))
        raise RecordError(
            f"{name}: there is no version {version!r}.",
            rule="versions are " + (", ".join(s.version for s in self.history(name)) or "none so far"),
            next_step="Name one of these versions.",
        )

    def reason_to_verify(self, stored: StoredRecord, environment: Mapping[str, Any]) -> str | None:
        """Return why a record must be verified before it runs in `environment`, or None when it need not.

        A record is a claim until this machine verified it: only the user's own ledger, which no notebook can
        bring along, turns it into a fact.
        """
        if stored.record.is_unverified:
            return "It was never verified."
        if stored.is_edited:
            return "kernel.cu was edited since it was verified."
        differences = environment_differences(stored.record.environment, environment)
        if self.ledger.contains(stored.record, environment):
            return None
        if differences:
            return "It was verified in another environment: " + "; ".join(differences[:4]) + "."
        return "It was verified on another machine or by another user."

    @uninterrupted
    def mark_verified(self, stored: StoredRecord, environment: Mapping[str, Any]) -> None:
        """Note that this machine verified `stored` in `environment`."""
        if not stored.is_edited and not stored.record.is_unverified:
            self.ledger.add(stored.record, environment)

    def _folders(self) -> tuple[Path, ...]:
        try:
            found = sorted(self.directory.iterdir())
            return tuple(p for p in found if p.is_dir() and not p.name.startswith("."))
        except (FileNotFoundError, NotADirectoryError):
            return ()
        except OSError as error:
            raise _unreadable(self.directory, error) from error

    def _read(self, folder: Path) -> StoredRecord | None:
        try:
            with locked(folder, is_shared=True):
                files = read_folder(folder)
        except FileNotFoundError as error:
            if (folder / RECORD_FILE).exists():
                raise _unreadable(folder, error) from error
            return None
        except OSError as error:
            raise _unreadable(folder, error) from error
        return StoredRecord(files.record, files.source, folder, files.is_edited)

    def _read_quietly(self, folder: Path, key: str = "") -> StoredRecord | None:
        try:
            return self._read(folder) if mentions(folder, key) else None
        except RecordError:
            return None

    def _history(self, folder: Path, key: str = "") -> Iterator[StoredRecord]:
        try:
            versions = history_folders(folder)
        except OSError as error:
            raise _unreadable(folder, error) from error
        for version in versions:
            found = self._read_quietly(version, key)
            if found is not None:
                yield replace(found, is_from_history=True, version=version.name)


def _unreadable(path: Path, error: OSError) -> RecordError:
    return RecordError(
        f"{path}: the record cannot be read.",
        rule="a record is a folder with kernel.cu and record.json",
        received=error.strerror or str(error),
        next_step="Restore it from version control, or delete it and generate the kernel again.",
    )


def _unwritable(folder: Path, error: OSError) -> RecordError:
    is_full = error.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))
    return RecordError(
        f"{folder}: the record cannot be written.",
        rule="records are kept in a directory with room for them"
        if is_full
        else "records are kept in a writable directory",
        received=error.strerror or str(error),
        next_step=(
            "Free some space"
            if is_full
            else "Make it writable, or choose another directory with LLMKernel.records_dir"
        )
        + ", then run the cell again; what was there before is untouched.",
    )
