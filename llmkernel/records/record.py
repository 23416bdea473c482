"""A record: everything needed to reproduce a generated kernel without a provider, as data.

A record is JSON. Reading one accepts unknown fields (a newer version wrote them) and refuses wrong types;
nothing that a record says is believed before it was verified here (`llmkernel.records.ledger`).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from typing import Any

from llmkernel.candidate.domain import VerifiedDomain
from llmkernel.errors import RecordError
from llmkernel.evaluation.report import CheckResult, Report
from llmkernel.records.fields import Fields, canonical_json, check_json, parse_json, plain_json

SCHEMA = "llmkernel-record/1"
MIME_TYPE = "application/vnd.llmkernel.record+json"
SOURCE_FILE = "kernel.cu"

_MAX_SOURCE_CHARACTERS = 4 << 20


@dataclass(frozen=True)
class RecordedProblem:
    """What was asked for.

    Attributes
    ----------
    intent : str
        Text of the cell, exactly.
    reference : str
        Source text of the reference, for a person to read; never executed.
    reference_fingerprint : str
        `llmkernel.records.fingerprint.Fingerprint.digest`.
    signature : str
        Text of the signature.
    examples : tuple of dict
        One an argument, in call order: ``name``, ``kind``, ``dtype``, ``shape``.
    header_version : int
        Version of the launch header's language.
    """

    intent: str
    reference: str
    reference_fingerprint: str
    signature: str
    examples: tuple[dict[str, Any], ...] = ()
    header_version: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "examples", tuple(plain_json(self.examples)))

    @property
    def key(self) -> str:
        """Content address of the problem: 64 hex digits (`record_key`)."""
        return record_key(self.reference_fingerprint, self.intent, self.signature, self.header_version)


@dataclass(frozen=True)
class Record:
    """Everything needed to reproduce a generated kernel without a provider.

    Attributes
    ----------
    name : str
        Name of the callable.
    problem : RecordedProblem
    candidate_digest : str
        `source_digest` of the accepted candidate.
    created : str
        UTC, ISO 8601.
    environment : dict
        Where it was verified: device limits and versions.
    report : dict
        `llmkernel.evaluation.report.Report.to_dict`; see `read_report`.
    domain : dict
        `llmkernel.candidate.domain.VerifiedDomain.to_dict`; see `read_domain`.
    provider, model : str
    usage : dict of str to int
        Tokens of all attempts together.
    cost_usd : float or None
        None where no price is known.
    attempts : int
    package_version : str
    """

    name: str
    problem: RecordedProblem
    candidate_digest: str
    created: str
    environment: dict[str, Any] = field(default_factory=dict)
    report: dict[str, Any] = field(default_factory=dict)
    domain: dict[str, Any] = field(default_factory=dict)
    provider: str = ""
    model: str = ""
    usage: dict[str, int] = field(default_factory=dict)
    cost_usd: float | None = None
    attempts: int = 1
    package_version: str = ""

    def __post_init__(self) -> None:
        # As JSON gives it back, so that a record equals what is read of it.
        for name in ("environment", "report", "domain", "usage"):
            object.__setattr__(self, name, plain_json(getattr(self, name)))

    @property
    def key(self) -> str:
        """Content address of the problem: 64 hex digits."""
        return self.problem.key

    @property
    def is_unverified(self) -> bool:
        """Whether its kernel was never compared with a reference: such a record is of no use to a replay."""
        return self.report.get("outcome") == "unverified" or not self.problem.reference_fingerprint

    def to_dict(self) -> dict[str, Any]:
        """Return JSON data that `from_dict` reads back."""
        data = asdict(self)
        digest = data.pop("candidate_digest")
        data["problem"]["examples"] = list(data["problem"]["examples"])
        return {
            **data,
            "schema": SCHEMA,
            "key": self.key,
            "candidate": {"file": SOURCE_FILE, "sha256": digest},
        }

    def to_json(self) -> str:
        """Return diff-friendly JSON text: sorted keys, two spaces, LF, a final newline."""
        text = json.dumps(self.to_dict(), indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)
        try:
            text.encode()
        except UnicodeEncodeError:  # a lone surrogate: escaped it survives UTF-8
            text = json.dumps(self.to_dict(), indent=2, sort_keys=True, allow_nan=False)
        return text + "\n"

    def to_output(self, source: str) -> dict[str, Any]:
        """Return the data of the `MIME_TYPE` output: the record and the candidate's source."""
        return {**self.to_dict(), "source": normalize_source(source)}

    @property
    def digest(self) -> str:
        """SHA-256 of the whole record: whatever is changed in it changes this."""
        return hashlib.sha256(canonical_json(self.to_dict())).hexdigest()

    def read_report(self) -> Report:
        """Rebuild the recorded report; RecordError when the data is not a report's."""
        try:
            data = _known(Report, self.report)
            data["checks"] = [_check(c) for c in data.get("checks", ())]
            return Report.from_dict(data)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise _malformed("report", str(error)) from error

    def read_domain(self) -> VerifiedDomain:
        """Rebuild the verified domain; RecordError when the data is not one."""
        data = Fields(self.domain, "domain")
        arguments = []
        for item in data.objects("arguments"):
            item.one_of("kind", ("numpy", "cupy", "torch", "scalar"))
            arguments.append(
                {
                    "name": item.text("name"),
                    "kind": item.text("kind"),
                    "dtype": item.text("dtype"),
                    "rank": item.integer("rank"),
                    "is_on_gpu": item.flag("is_on_gpu", default=False),
                }
            )
        return VerifiedDomain.from_dict(
            {
                "arguments": arguments,
                "result_kind": data.one_of("result_kind", ("numpy", "cupy", "torch", "scalar")),
                "is_result_on_gpu": data.flag("is_result_on_gpu"),
                "returns_tuple": data.flag("returns_tuple"),
                "device": data.one_of("device", ("cuda", "cpu")),
            }
        )

    @classmethod
    def from_dict(cls, value: object, *, where: str = "record") -> Record:
        """Rebuild from `to_dict`.

        Parameters
        ----------
        value : object
            Parsed JSON, of whatever shape.
        where : str
            Named in errors: a path, or ``record``.

        Raises
        ------
        llmkernel.errors.RecordError
            When a field is missing or has a wrong type, the schema is another one, or the key does not
            belong to the problem.
        """
        check_json(value, where)
        data = Fields(value, where)
        schema = data.text("schema")
        if schema != SCHEMA:
            raise RecordError(
                f"{where}: the record has another schema.",
                rule=f"schema is {SCHEMA!r}",
                received=repr(schema[:80]),
                next_step="Install the version of llmkernel that wrote it, or generate the kernel again.",
            )
        asked = data.object("problem")
        candidate = data.object("candidate")
        problem = RecordedProblem(
            intent=asked.text("intent"),
            reference=asked.text("reference"),
            reference_fingerprint=asked.text("reference_fingerprint"),
            signature=asked.text("signature"),
            examples=tuple(dict(example.data) for example in asked.objects("examples")),
            header_version=asked.integer("header_version"),
        )
        if candidate.text("file") != SOURCE_FILE:
            raise _malformed(where, f"candidate.file is {SOURCE_FILE!r}")
        record = cls(
            name=data.text("name"),
            problem=problem,
            candidate_digest=candidate.digest("sha256"),
            created=data.text("created"),
            environment=dict(data.object("environment").data),
            report=dict(data.object("report").data),
            domain=dict(data.object("domain").data),
            provider=data.text("provider"),
            model=data.text("model"),
            usage=data.object("usage").counts(),
            cost_usd=data.optional_number("cost_usd"),
            attempts=data.integer("attempts"),
            package_version=data.text("package_version"),
        )
        if not record.name:
            raise _malformed(where, "name is not empty")
        _check_utc(record.created, where)
        if data.text("key") != record.key:
            raise _malformed(
                where, "the key does not belong to the problem: one of the two was changed by hand"
            )
        return record

    @classmethod
    def from_json(cls, content: bytes | str, *, where: str = "record") -> Record:
        """Rebuild from `to_json`; RecordError for anything that is not a record."""
        return cls.from_dict(parse_json(content, where), where=where)

    @classmethod
    def from_output(cls, value: object, *, where: str = "output") -> tuple[Record, str]:
        """Rebuild record and source from `to_output`.

        Raises
        ------
        llmkernel.errors.RecordError
            When the data is malformed or the source is not the one that the record names.
        """
        record = cls.from_dict(value, where=where)
        source = normalize_source(Fields(value, where).text("source"))
        check_source(source, where)
        if source_digest(source) != record.candidate_digest:
            raise RecordError(
                f"{where}: the source is not the one that the record names.",
                rule="the SHA-256 of the source is the record's candidate.sha256",
                next_step="Take the notebook as its author saved it, or generate the kernel again.",
            )
        return record, source


def record_key(fingerprint: str, intent: str, signature: str, header_version: int) -> str:
    """Return the content address of a problem: SHA-256 over everything that defines it, as 64 hex digits.

    Provider and model are not part of it: the same problem replays whoever solved it.
    """
    return hashlib.sha256(canonical_json([fingerprint, intent, signature, header_version])).hexdigest()


def normalize_source(source: str) -> str:
    r"""Return `source` with LF line ends and without a byte order mark, as it is stored and hashed.

    Version control may turn LF into CRLF on Windows: that is not an edit.

    Examples
    --------
    >>> normalize_source("a\r\nb")
    'a\nb'
    """
    return source.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def source_digest(source: str) -> str:
    """Return the SHA-256 of a candidate's normalised source as 64 hex digits."""
    return hashlib.sha256(normalize_source(source).encode("utf-8", "surrogatepass")).hexdigest()


def check_source(source: str, where: str) -> None:
    """Raise RecordError for a source that cannot be a `.cu` file: too long, NUL bytes or lone surrogates."""
    if len(source) > _MAX_SOURCE_CHARACTERS:
        raise _malformed(where, f"a candidate has at most {_MAX_SOURCE_CHARACTERS} characters")
    if "\0" in source or re.search(r"[\ud800-\udfff]", source):
        raise _malformed(where, "a candidate is text: UTF-8 without NUL bytes")


def utc_now() -> str:
    """Return the time of day in UTC, ISO 8601, to the microsecond (so that versions sort)."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def _check_utc(text: str, where: str) -> None:
    try:
        offset = datetime.fromisoformat(text).utcoffset()
    except ValueError:
        offset = None
    if offset is None or offset.total_seconds() != 0:
        raise _malformed(where, "created is a UTC time in ISO 8601")


def _known(kind: type[Any], data: Mapping[str, Any]) -> dict[str, Any]:
    names = {f.name for f in fields(kind)}
    return {name: value for name, value in data.items() if name in names}


def _check(data: Any) -> dict[str, Any]:
    return _known(CheckResult, data)


def _malformed(where: str, rule: str) -> RecordError:
    return RecordError(
        f"{where}: not a record.",
        rule=rule,
        next_step="Restore it from version control, or delete it and generate the kernel again.",
    )
