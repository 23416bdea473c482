"""What the local server is told to do, as data: one `Script` answers one request."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

# Where a reply breaks off.
CUT = "cut"  # the socket is closed in the middle of an event
CLEAN_END = "clean-end"  # the body ends well-formed, without the protocol's last events
SILENCE = "silence"  # nothing more is sent until the client hangs up


@dataclass(frozen=True)
class Script:
    """How one request is answered, in either protocol.

    Attributes
    ----------
    text : str
        The reply.
    thinking : str
        Reasoning (its summary) before the reply.
    stop : str
        ``end``, ``max_tokens``, ``refusal``, ``content_filter`` or ``context``.
    category, explanation : str
        Of a refusal.
    status, error, headers : int, dict or str, dict
        An HTTP error in place of a stream; `error` is the body (a string is sent as HTML).
    stream_error : dict or None
        An error object inside the 200 stream, after `break_after` characters of text.
    failed : dict or None
        The error of a `response.failed` (Responses protocol only).
    broken : str
        ``cut``, ``clean-end`` or ``silence``, after `break_after` characters of text.
    break_after : int
    chunk : int
        Characters of text in an event.
    delay_s : float
        Before each text event.
    split_bytes : bool
        Send the body a byte at a time where it is not ASCII, so that no chunk holds a whole character.
    usage : dict or None
        Counts in the protocol's own words, None for the server's; ``{}`` for none at all.
    model : str
        The id that is reported; empty for the one requested.
    orphan_stop : bool
        A refusal whose content block stops without having started (Messages protocol only).
    raw : str or None
        Sent as the body in place of the protocol's events.
    content_type : str
    """

    text: str = ""
    thinking: str = ""
    stop: str = "end"
    category: str = ""
    explanation: str = ""
    status: int = 200
    error: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    stream_error: Mapping[str, Any] | None = None
    failed: Mapping[str, Any] | None = None
    broken: str = ""
    break_after: int = 10**9
    chunk: int = 7
    delay_s: float = 0.0
    split_bytes: bool = False
    usage: Mapping[str, Any] | None = None
    model: str = ""
    orphan_stop: bool = False
    raw: str | None = None
    content_type: str = "text/event-stream; charset=utf-8"

    @property
    def shown(self) -> str:
        """The text that is sent before the reply breaks off."""
        return self.text[: self.break_after] if self.broken or self.stream_error or self.failed else self.text

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-able data."""
        return {k: v for k, v in asdict(self).items() if v != getattr(Script(), k)}


def reply(text: str, **changes: Any) -> Script:
    """Return a whole reply."""
    return replace(Script(text=text), **changes)


def refusal(category: str = "cyber", explanation: str = "I can't help with that.", **changes: Any) -> Script:
    """Return a refusal: HTTP 200, no text."""
    return replace(Script(stop="refusal", category=category, explanation=explanation), **changes)


def http_error(status: int, error: Any, **headers: str) -> Script:
    """Return an HTTP error; underscores in header names become hyphens."""
    return Script(status=status, error=error, headers={k.replace("_", "-"): v for k, v in headers.items()})


def anthropic_error(status: int, kind: str, message: str, **headers: str) -> Script:
    """Return an HTTP error in the words of the Messages protocol."""
    body = {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_wire"}
    return http_error(status, body, **headers)


def openai_error(
    status: int, code: str | None, message: str, kind: str = "error_type", **headers: str
) -> Script:
    """Return an HTTP error in the words of the Responses and chat protocols."""
    return http_error(
        status, {"error": {"message": message, "type": kind, "param": None, "code": code}}, **headers
    )


def load_scripts(text: str) -> list[Script]:
    """Return the scripts of a JSON file: a list of objects with the fields of `Script`."""
    return [Script(**entry) for entry in json.loads(text)]
