"""Strict reading of JSON that came from elsewhere: a wrong type is a `RecordError` that names its place."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from llmkernel.errors import RecordError


class Fields:
    """One JSON object, read field by field.

    Parameters
    ----------
    value : object
        Must be a JSON object.
    where : str
        Its place, named in errors.
    """

    def __init__(self, value: object, where: str) -> None:
        self.where = where
        if not isinstance(value, Mapping):
            raise self._wrong("", "an object", value)
        self.data: Mapping[str, Any] = value

    def text(self, name: str) -> str:
        """Return a string."""
        value = self._get(name, "a string")
        if not isinstance(value, str):
            raise self._wrong(name, "a string", value)
        return value

    def one_of(self, name: str, allowed: tuple[str, ...]) -> str:
        """Return a string out of a closed list."""
        value = self.text(name)
        if value not in allowed:
            raise self._wrong(name, "one of " + ", ".join(allowed), value)
        return value

    def digest(self, name: str) -> str:
        """Return 64 lower-case hex digits."""
        value = self.text(name)
        if not re.fullmatch(r"[0-9a-f]{64}", value):
            raise self._wrong(name, "64 hex digits", value)
        return value

    def integer(self, name: str) -> int:
        """Return an integer that is not negative."""
        value = self._get(name, "an integer")
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**63:
            raise self._wrong(name, "an integer that is not negative", value)
        return value

    def flag(self, name: str, *, default: bool | None = None) -> bool:
        """Return a boolean; `default` where the field is missing."""
        value = self.data.get(name, default)
        if not isinstance(value, bool):
            raise self._wrong(name, "true or false", value)
        return value

    def optional_number(self, name: str) -> float | None:
        """Return a finite number, or None for null or a missing field."""
        value = self.data.get(name)
        if value is None:
            return None
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or abs(value) > 1e300
            or not math.isfinite(value)
        ):
            raise self._wrong(name, "a number or null", value)
        return float(value)

    def object(self, name: str) -> Fields:
        """Return a nested object."""
        return Fields(self._get(name, "an object"), f"{self.where}: {name}")

    def objects(self, name: str) -> Iterator[Fields]:
        """Yield the objects of an array."""
        value = self._get(name, "an array of objects")
        if not isinstance(value, list | tuple):
            raise self._wrong(name, "an array of objects", value)
        for index, item in enumerate(value):
            yield Fields(item, f"{self.where}: {name}[{index}]")

    def counts(self) -> dict[str, int]:
        """Return this object as a dict of integers that are not negative."""
        return {name: self.integer(name) for name in self.data}

    def _get(self, name: str, expected: str) -> Any:
        if name not in self.data:
            raise RecordError(
                f"{self.where}: the field {name!r} is missing.",
                rule=f"{name} is {expected}",
                next_step=_NEXT_STEP,
            )
        return self.data[name]

    def _wrong(self, name: str, expected: str, value: Any) -> RecordError:
        place = f"the field {name!r}" if name else "the value"
        return RecordError(
            f"{self.where}: {place} has a wrong type or value.",
            rule=f"{name or 'it'} is {expected}",
            received=repr(value)[:80]
            if isinstance(value, str | int | float | None)
            else type(value).__name__,
            next_step=_NEXT_STEP,
        )


_MAX_DEPTH = 64
_NEXT_STEP = "Restore it from version control, or delete it and generate the kernel again."


def parse_json(content: bytes | str, where: str) -> Any:
    """Parse JSON in UTF-8.

    Raises
    ------
    llmkernel.errors.RecordError
        Names `where` and the reason.
    """
    try:
        return json.loads(content if isinstance(content, str) else content.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:  # both JSON and Unicode errors are ValueErrors
        raise _not_json(where, str(error)) from error


def check_json(value: Any, where: str) -> None:
    """Refuse what Python parses but a record must not hold: NaN, infinity, nesting that exhausts the stack.

    Copying and writing recurse deeper than parsing: what was read must not fail later.
    """
    level = [value]
    for _ in range(_MAX_DEPTH):
        if any(isinstance(item, float) and not math.isfinite(item) for item in level):
            raise _not_json(where, "a number that is not finite")
        level = [
            item
            for container in level
            if isinstance(container, dict | list)
            for item in (container.values() if isinstance(container, dict) else container)
        ]
        if not level:
            return
    raise _not_json(where, f"nested deeper than {_MAX_DEPTH} levels")


def plain_json(value: Any) -> Any:
    """Return `value` as it would come back from JSON: tuples become lists, keys become strings."""
    if isinstance(value, Mapping):
        return {str(name): plain_json(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain_json(item) for item in value]
    return value


def canonical_json(value: Any) -> bytes:
    """Return the one JSON text of `value` that digests are taken of: sorted keys, no spaces, ASCII."""
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
    ).encode()


def _not_json(where: str, reason: str) -> RecordError:
    return RecordError(
        f"{where}: not JSON of a record.",
        rule="JSON in UTF-8, with finite numbers",
        received=reason[:160],
        next_step=_NEXT_STEP,
    )
