"""Take secrets out of everything that is sent, shown, logged or saved.

Three sources: the shapes of well-known keys, assignments and headers that announce a secret
(`llmkernel.prompts.secret_shapes`), the rules of detect-secrets (`llmkernel.prompts.detector`), and the values of
environment variables, and of keys that this process loaded, that are secrets by name. Values are also found in base64, in
hexadecimal, and broken over lines or string literals.
"""

from __future__ import annotations

import base64
import os
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from llmkernel.prompts.detector import find_detected
from llmkernel.prompts.secret_shapes import find_shapes

MASK = "[redacted]"
_MIN_SECRET_LENGTH = 12
# A value that is looked for in pieces, or encoded, has at least this many letters and digits.
_MIN_COMPACT_LENGTH = 16

_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|_PAT$", re.IGNORECASE)
_NOT_SECRET_NAME = re.compile(r"(?:_FILE|_PATH|_DIR|_URL|_ID|_TYPE)$|KEYRING|KEYBOARD|KEYMAP", re.IGNORECASE)
_URL_PASSWORD = re.compile(r"://[^\s/@:]*:([^\s/@]+)@")
_ALPHANUMERIC = re.compile(r"[A-Za-z0-9]+")
_NOT_ALPHANUMERIC = bytes(i for i in range(256) if i > 127 or not chr(i).isalnum())
# Between two string literals that are one text: "sk-" "ant", "sk-" + "ant", also over a line's end.
_JOINT = re.compile(r"[\"'][\s+\\]{1,80}[A-Za-z]{0,2}[\"']")

_loaded: set[str] = set()


@dataclass(frozen=True)
class Secret:
    """Where a secret is in a text; the secret itself is deliberately not kept.

    Attributes
    ----------
    kind : str
        What it looks like, such as ``GitHub token``.
    start, end : int
        Half-open range of characters.
    line : int
        1-based.
    """

    kind: str
    start: int
    end: int
    line: int


def remember_secret(value: str) -> None:
    """Redact `value` verbatim from now on: for keys that came from a keyring or a file."""
    if len(value) >= _MIN_SECRET_LENGTH:
        _loaded.add(value)


def find_secrets(text: str) -> list[Secret]:
    """Return the secrets in `text`, by position, without overlaps."""
    spans = sorted(_spans(text), key=lambda span: (span[0], -span[1]))
    found: list[Secret] = []
    line, counted = 1, 0
    for start, end, kind in spans:
        if found and start < found[-1].end:
            if end > found[-1].end:
                last = found[-1]
                found[-1] = Secret(last.kind, last.start, end, last.line)
            continue
        line, counted = line + text.count("\n", counted, start), start
        found.append(Secret(kind, start, end, line))
    return found


def redact(text: str) -> str:
    """Return `text` with every secret replaced by ``[redacted]``; other text is unchanged."""
    pieces: list[str] = []
    position = 0
    for secret in find_secrets(text):
        pieces += (text[position : secret.start], MASK)
        position = secret.end
    return "".join(pieces) + text[position:] if pieces else text


def redact_all(value: Any) -> Any:
    """Return JSON-able data with every text in it redacted; the names in it stay."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {name: redact_all(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [redact_all(item) for item in value]
    return value


def _spans(text: str) -> Iterator[tuple[int, int, str]]:
    for start, end, kind in (
        *_known(text),
        *find_shapes(text),
        *find_detected(text),
        *_across_literals(text),
    ):
        if text[start:end] != MASK:
            yield start, end, kind


def _known(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield where known values stand: as they are, in pieces, and encoded."""
    values = list(_known_values())
    for value, kind in values:
        yield from ((start, start + len(value), kind) for start in _places(text, value))
    if not values:
        return
    # A character each, so that places in it are places in the text.
    compact = text.encode("latin-1", "replace").translate(None, _NOT_ALPHANUMERIC).decode("ascii")
    found = [
        (start, start + len(form), kind)
        for value, kind in values
        for form in _forms(value)
        for start in _places(compact, form)
    ]
    if found:
        places = [run.start() + i for run in _ALPHANUMERIC.finditer(text) for i in range(len(run[0]))]
        yield from ((places[start], places[end - 1] + 1, kind) for start, end, kind in found)


def _places(text: str, value: str) -> Iterator[int]:
    start = text.find(value)
    while start >= 0:
        yield start
        start = text.find(value, start + len(value))


@lru_cache(maxsize=256)
def _forms(value: str) -> tuple[str, ...]:
    """Return the letters and digits of `value`, of its base64 at each of the three alignments, and of its hexadecimal."""
    data = value.encode("utf-8", "surrogatepass")
    forms = {"".join(_ALPHANUMERIC.findall(value)), data.hex(), data.hex().upper()}
    for before in range(3):
        encoded = base64.b64encode(b"\0" * before + data).decode().rstrip("=")
        # The characters at both ends also hold bits of what stands beside the value.
        whole = encoded[(0, 2, 3)[before] : len(encoded) - bool((before + len(data)) % 3)]
        forms.add("".join(_ALPHANUMERIC.findall(whole)))
    return tuple(form for form in forms if len(form) >= _MIN_COMPACT_LENGTH)


def _across_literals(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield what shows once neighbouring string literals are one."""
    joints = list(_JOINT.finditer(text))
    if not joints:
        return
    starts, kept, at = [0], [0], 0  # where each piece begins, in `text` and in what is left of it
    pieces = []
    for joint in joints:
        pieces.append(text[at : joint.start()])
        at = joint.end()
        starts.append(at)
        kept.append(kept[-1] + len(pieces[-1]))
    joined = "".join(pieces) + text[at:]
    for start, end, kind in (*_known(joined), *find_shapes(joined), *find_detected(joined)):
        first, last = (bisect_right(kept, place) - 1 for place in (start, end - 1))
        if first != last:  # within one piece it was found already
            yield starts[first] + start - kept[first], starts[last] + end - kept[last], kind


def _known_values() -> Iterator[tuple[str, str]]:
    for value in _loaded:
        yield value, "loaded key"
    for name, value in os.environ.items():
        if len(value) < _MIN_SECRET_LENGTH:
            continue
        if _SECRET_NAME.search(name) and not _NOT_SECRET_NAME.search(name):
            if not _is_path(value):
                yield value, f"value of ${name}"
        elif "://" in value:
            found = _URL_PASSWORD.search(value)
            if found and len(found[1]) >= _MIN_SECRET_LENGTH:
                yield found[1], f"password in ${name}"


def _is_path(value: str) -> bool:
    try:
        return value.startswith("/") and Path(value).exists()
    except OSError:  # too long for a path
        return False
