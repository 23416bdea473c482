"""Take secrets out of everything that is sent, shown, logged or saved.

Three sources: the shapes of well-known keys, assignments and headers that announce a secret, and the values
of environment variables (and of keys this process loaded) that are secrets by name. Kernels are full of long
hexadecimal constants and hashes, so length and entropy alone never make a secret here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MASK = "[redacted]"
_MIN_SECRET_LENGTH = 12
_LEFT = r"(?<![A-Za-z0-9_])"

# A fragment is what remains of a key when its middle is masked by a provider: "sk-ant-...abcd", "sk-ab***yz".
_MASKING = r"(?:\*{3,}|\.{3,}|…|•{2,}|x{4,}|X{4,})"
_KEY_BODY = r"[A-Za-z0-9_\-]"

# (kind, pattern); the group "secret" is replaced where it exists, the whole match otherwise.
_SHAPES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(pattern))
    for kind, pattern in (
        (
            "private key",
            (
                r"-----BEGIN (?P<label>[A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?)-----"
                r"[\s\S]*?(?:-----END (?P=label)-----|\Z)"
            ),
        ),
        ("URL credentials", r"(?<=://)(?P<secret>[^\s/@:'\"<>]*:[^\s/@'\"<>]+)(?=@)"),
        (
            "provider key fragment",
            # Not with an underscore: `sk_args...` is a parameter pack in C++.
            rf"{_LEFT}(?:sk|pk|rk|xai)-{_KEY_BODY}{{0,40}}?{_MASKING}(?:[A-Za-z0-9_\-*…•]|\.(?=[A-Za-z0-9_\-*.]))*",
        ),
        (
            "provider key",
            (
                r"(?i:incorrect api key provided|invalid (?:x-)?api[- ]key(?: provided)?)\s*:\s*"
                r"(?P<secret>[^\s,;]+?)(?=[.,;]?(?:\s|$))"
            ),
        ),
        ("Anthropic key", rf"{_LEFT}sk-ant-{_KEY_BODY}{{8,}}"),
        ("OpenRouter key", rf"{_LEFT}sk-or-{_KEY_BODY}{{8,}}"),
        (
            "OpenAI key",
            (
                # The bare form has no underscore: `sk-num_tokens_per_block2` is a subtraction.
                rf"{_LEFT}sk-(?:(?:[A-Za-z]{{3,}}-)+{_KEY_BODY}{{16,}}"
                rf"|(?=[A-Za-z]*[0-9])[A-Za-z0-9]{{20,}}{_KEY_BODY}*)"
            ),
        ),
        ("provider key", rf"{_LEFT}(?:xai|pplx|nvapi)-{_KEY_BODY}{{20,}}"),
        # Without underscores in the rest: `fw_partial_sums_of_the_block` is an identifier.
        ("provider key", rf"{_LEFT}(?:gsk|r8|fw|tgp_v1)_(?=[A-Za-z]*[0-9])[A-Za-z0-9]{{20,}}"),
        ("GitHub token", rf"{_LEFT}(?:gh[pousr]_[A-Za-z0-9]{{20,}}|github_pat_[A-Za-z0-9_]{{20,}})"),
        ("GitLab token", rf"{_LEFT}glpat-{_KEY_BODY}{{16,}}"),
        ("AWS key id", rf"{_LEFT}(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{{16}}(?![A-Za-z0-9])"),
        ("Google key", rf"{_LEFT}AIza{_KEY_BODY}{{35}}"),
        ("Google OAuth token", rf"{_LEFT}(?:ya29\.{_KEY_BODY}{{20,}}|GOCSPX-{_KEY_BODY}{{20,}})"),
        ("Hugging Face token", rf"{_LEFT}(?:hf_|api_org_)[A-Za-z0-9]{{20,}}"),
        ("Slack token", rf"{_LEFT}xox[abeoprs]-[A-Za-z0-9\-]{{10,}}"),
        (
            "Slack webhook",
            r"hooks\.slack\.com/(?:services|workflows)/(?P<secret>[A-Za-z0-9/_\-]{20,})",
        ),
        ("PyPI token", rf"{_LEFT}pypi-[A-Za-z0-9_\-]{{32,}}"),
        ("npm token", rf"{_LEFT}npm_[A-Za-z0-9]{{32,}}"),
        ("JSON web token", rf"{_LEFT}eyJ{_KEY_BODY}{{10,}}\.eyJ{_KEY_BODY}{{10,}}\.{_KEY_BODY}*"),
        (
            "authorization header",
            r"\b(?i:bearer|authorization:\s*basic)\s+(?P<secret>[A-Za-z0-9_\-.~+/]{12,}=*)",
        ),
        (
            # A quoted value, or a bare one as in .env files, HTTP headers and shell exports.
            "assigned secret",
            r"""(?ix)
            \b[\w\-]{0,40}(?:api[_\-]?key|secret(?:[_\-]?(?:access[_\-]?)?key)?|access[_\-]?key|auth[_\-]?token
              |(?:access|refresh|api|bearer)[_\-]?token|client[_\-]?secret|password|passwd|passphrase
              |private[_\-]?key)
            ["']?\s*(?:=>|:=|=|:)\s*
            (?: (?P<quote>["'])(?P<secret>(?:(?!(?P=quote))[^\n\\]|\\.){8,})(?P=quote)
              | (?P<bare>(?=[A-Za-z0-9_\-.~+/]*[0-9])(?=[A-Za-z0-9_\-.~+/]*[A-Za-z])
                  [A-Za-z0-9_\-.~+/]{16,}=*) )
            """,
        ),
    )
)

_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL", re.IGNORECASE)
_NOT_SECRET_NAME = re.compile(r"(?:_FILE|_PATH|_DIR|_URL|_ID|_TYPE)$|KEYRING|KEYBOARD|KEYMAP", re.IGNORECASE)

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
    for start, end, kind in spans:
        if found and start < found[-1].end:
            if end > found[-1].end:
                last = found[-1]
                found[-1] = Secret(last.kind, last.start, end, last.line)
            continue
        found.append(Secret(kind, start, end, text.count("\n", 0, start) + 1))
    return found


def redact(text: str) -> str:
    """Return `text` with every secret replaced by ``[redacted]``; other text is unchanged."""
    pieces: list[str] = []
    position = 0
    for secret in find_secrets(text):
        pieces += (text[position : secret.start], MASK)
        position = secret.end
    return "".join(pieces) + text[position:] if pieces else text


def _spans(text: str) -> Iterator[tuple[int, int, str]]:
    for value, kind in _known_values():
        start = text.find(value)
        while start >= 0:
            yield start, start + len(value), kind
            start = text.find(value, start + len(value))
    for kind, pattern in _SHAPES:
        for match in pattern.finditer(text):
            groups = match.groupdict()
            name = next((g for g in ("secret", "bare") if groups.get(g)), None)
            start, end = match.span(name) if name else match.span()
            if text[start:end] != MASK:
                yield start, end, kind


def _known_values() -> Iterator[tuple[str, str]]:
    for value in _loaded:
        yield value, "loaded key"
    for name, value in os.environ.items():
        if (
            len(value) >= _MIN_SECRET_LENGTH
            and _SECRET_NAME.search(name)
            and not _NOT_SECRET_NAME.search(name)
            and not _is_path(value)
        ):
            yield value, f"value of ${name}"


def _is_path(value: str) -> bool:
    try:
        return value.startswith("/") and Path(value).exists()
    except OSError:  # too long for a path
        return False
