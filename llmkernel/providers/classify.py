"""What an error answer means: from status, codes and message to one class."""

from __future__ import annotations

import re
from collections.abc import Mapping

from llmkernel.providers.errors import (
    AuthenticationError,
    BadRequestError,
    ContextTooLongError,
    NetworkError,
    OverloadedError,
    PermissionDeniedError,
    ProviderTimeoutError,
    QuotaExceededError,
    RateLimitError,
    RemoteError,
    ServerError,
    StreamCutError,
    UnexpectedResponseError,
    UnknownModelError,
)


def read_body(body: object) -> tuple[frozenset[str], str]:
    """Return the codes and the message of an error object of either protocol, nested or flat."""
    if isinstance(body, Mapping) and isinstance(body.get("error"), Mapping | str):
        inner = body["error"]
        body = inner if isinstance(inner, Mapping) else {"message": inner}
    if not isinstance(body, Mapping):
        return frozenset(), body if isinstance(body, str) else ""
    details = body.get("details")
    found = [
        body.get("type"),
        body.get("code"),
        details.get("error_code") if isinstance(details, Mapping) else None,
    ]
    codes = frozenset(str(c) for c in found if c and c != "error")
    message = body.get("message")
    return codes, message if isinstance(message, str) else ""


_QUOTA = re.compile(
    r"insufficient_quota|exceeded your current quota|credit balance is too low|billing hard limit"
    r"|insufficient credits|out of credits",
    re.IGNORECASE,
)
_TOO_LONG = re.compile(
    r"prompt is too long|context length|context window|context size|maximum context|too many tokens"
    r"|input is too long",
    re.IGNORECASE,
)
# By code, then by status; the first line that matches wins.
_BY_CODE: tuple[tuple[type[RemoteError], frozenset[str]], ...] = (
    (
        QuotaExceededError,
        frozenset(
            {"insufficient_quota", "billing_error", "billing_hard_limit_reached", "billing_not_active", "402"}
        ),
    ),
    (
        ContextTooLongError,
        frozenset({"context_length_exceeded", "exceed_context_size_error", "request_too_large"}),
    ),
    (UnknownModelError, frozenset({"model_not_found"})),
    (AuthenticationError, frozenset({"authentication_error", "invalid_api_key", "401"})),
    (PermissionDeniedError, frozenset({"permission_error", "403"})),
    (
        OverloadedError,
        frozenset({"overloaded_error", "overloaded", "server_is_overloaded", "slow_down", "529", "503"}),
    ),
    (RateLimitError, frozenset({"rate_limit_error", "rate_limit_exceeded", "429"})),
    (ProviderTimeoutError, frozenset({"timeout_error", "408"})),
    (
        ServerError,
        frozenset({"api_error", "server_error", "internal_error", "internal_server_error", "500", "502"}),
    ),
)
_BY_STATUS: dict[int, type[RemoteError]] = {
    400: BadRequestError,
    401: AuthenticationError,
    402: QuotaExceededError,
    403: PermissionDeniedError,
    407: NetworkError,
    408: ProviderTimeoutError,
    409: ServerError,  # both SDKs document it as a lock timeout
    412: BadRequestError,
    413: ContextTooLongError,
    422: BadRequestError,
    429: RateLimitError,
    431: BadRequestError,
    499: StreamCutError,
    503: OverloadedError,
    529: OverloadedError,
}


def classify(
    status: int | None, codes: frozenset[str], message: str, *, is_structured: bool = True
) -> type[RemoteError]:
    """Return the class for an error answer; `status` None is an error inside a stream."""
    if _QUOTA.search(message) or any("spend_limit" in c or "quota" in c for c in codes):
        return QuotaExceededError
    for kind, words in _BY_CODE[:3]:
        if codes & words:
            return kind
    if status in {None, 400, 422} and _TOO_LONG.search(message):
        return ContextTooLongError
    if status == 404:  # a page of a web server says nothing about models
        return (
            UnknownModelError
            if is_structured and re.search(r"\bmodel", message, re.IGNORECASE)
            else UnexpectedResponseError
        )
    for kind, words in _BY_CODE[3:]:
        if codes & words:
            return kind
    if status is None:
        return BadRequestError if codes & {"invalid_request_error", "invalid_prompt", "400"} else ServerError
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    return ServerError if status >= 500 else UnexpectedResponseError
