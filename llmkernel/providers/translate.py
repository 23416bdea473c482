"""From what the SDKs raise to the errors of this package.

Nothing here imports an SDK: exceptions are recognised by the module and the name of their classes, and by the attributes
that both SDKs document (`status_code`, `response`, `body`).
"""

from __future__ import annotations

import difflib
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from llmkernel.prompts.redaction import redact
from llmkernel.providers import network
from llmkernel.providers.errors import (
    AuthenticationError,
    BadRequestError,
    ContextTooLongError,
    MissingKeyError,
    NetworkError,
    OverloadedError,
    PermissionDeniedError,
    ProviderTimeoutError,
    QuotaExceededError,
    RateLimitError,
    RefusedError,
    RemoteError,
    SdkError,
    ServerError,
    StreamCutError,
    TruncatedError,
    UnexpectedResponseError,
    UnknownModelError,
)
from llmkernel.providers.models import load_models
from llmkernel.providers.retry import retry_after_s

_SDK_ROOTS = frozenset({"anthropic", "openai", "httpx2", "httpx", "httpcore2", "httpcore"})


@dataclass
class Call:
    """One request on its way, for messages.

    Attributes
    ----------
    provider, model, base_url : str
    key_origin : str
        Where the key came from; empty without one.
    partial : str
        Text received so far.
    is_streaming : bool
        The server has begun to answer.
    read_timeout_s : float
    """

    provider: str
    model: str
    base_url: str
    key_origin: str = ""
    partial: str = ""
    is_streaming: bool = False
    read_timeout_s: float = 300.0
    request_id: str = ""


def is_foreign(error: BaseException) -> bool:
    """Return whether `error` comes from an SDK or its transport, or is what they let through from a broken answer."""
    roots = {cls.__module__.partition(".")[0] for cls in type(error).__mro__}
    return bool(roots & _SDK_ROOTS) or isinstance(
        error, OSError | ValueError | TypeError | RuntimeError | LookupError
    )


def translate(error: BaseException, call: Call) -> RemoteError | MissingKeyError:
    """Return the error of this package that says what `error` means for `call`.

    Raise it ``from None``: the SDK's frames say nothing to a user, and its exceptions hold requests with keys.
    """
    names = {cls.__name__ for cls in type(error).__mro__}
    status = getattr(error, "status_code", None)
    response = getattr(error, "response", None)
    if status is None and "HTTPStatusError" in names:
        status = getattr(response, "status_code", None)
    if names & {"CredentialsError", "SubjectTokenProviderError"}:
        return MissingKeyError(
            f"the credentials of {call.provider} cannot be loaded",
            received=redact(str(error)),
            next_step=_CHECK_KEY,
        )
    if "APIResponseValidationError" in names:
        return _unexpected(call, str(error), status)
    if isinstance(status, int) or "APIStatusError" in names:
        return _from_status(error, status, response, call)
    if names & {"LengthFinishReasonError"}:
        return truncated(call)
    if names & {"ContentFilterFinishReasonError"}:
        return refused(call, "content_filter")
    if names & {"APITimeoutError", "TimeoutException"} or isinstance(error, TimeoutError):
        return _timeout(error, call)
    if names & {"APIConnectionError", "TransportError"} or isinstance(error, OSError):
        return _from_transport(error, call)
    if names & {"InvalidURL", "UnsupportedProtocol"}:
        return _bad_url(error, call)
    if names & {
        "DecodingError",
        "TooManyRedirects",
        "HTTPError",
        "JSONDecodeError",
        "ValidationError",
        "SSEError",
    }:
        return _unexpected(call, str(error), None)
    if "APIError" in names and getattr(error, "body", None) is not None:
        return from_body(error.body, call)  # type: ignore[attr-defined]
    return SdkError(
        f"the SDK of {call.provider} failed: {type(error).__name__}",
        provider=call.provider,
        received=_short(str(error)),
        partial=call.partial,
        next_step="update it: pip install --upgrade anthropic openai; if it stays, report it with this message",
    )


def from_body(body: object, call: Call, status: int | None = None, **extra: Any) -> RemoteError:
    """Return the error that an error object (in a body, or as an event inside a stream) stands for."""
    codes, message = read_body(body)
    kind = classify(status, codes, message, is_structured=isinstance(body, Mapping))
    what, rule, next_step = _describe(kind, call, message)
    label = " · ".join([*([f"HTTP {status}"] if status else []), *sorted(codes)])
    received = f"{label}: {_short(message)}" if message and label else _short(message) or label
    common = {
        "provider": call.provider,
        "partial": call.partial,
        "request_id": call.request_id,
        "status": status,
    }
    return kind(what, rule=rule, received=received, next_step=next_step, **{**common, **extra})


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
    r"insufficient_quota|exceeded your current quota|credit balance is too low|billing hard limit|insufficient credits"
    r"|out of credits",
    re.IGNORECASE,
)
_TOO_LONG = re.compile(
    r"prompt is too long|context length|context window|context size|maximum context|too many tokens|input is too long",
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
            if is_structured and re.search(r"\bmodel", message, re.I)
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


def stream_cut(call: Call, received: str = "the stream ended without a stop reason") -> StreamCutError:
    """Return the error of a reply that ended before its end."""
    return StreamCutError(
        f"the reply of {call.provider} was cut off after {len(call.partial)} characters",
        rule="a reply counts only when the provider says why it stopped",
        received=received,
        next_step="run the cell again; if it happens again, look at proxies between here and the provider",
        provider=call.provider,
        partial=call.partial,
        request_id=call.request_id,
    )


def truncated(call: Call, max_tokens: int | None = None) -> TruncatedError:
    """Return the error of a reply that reached its token limit."""
    limit = f" of {max_tokens} tokens" if max_tokens else ""
    return TruncatedError(
        f"the reply of {call.model} reached its limit{limit}",
        rule="a truncated reply is never compiled",
        received=f"{len(call.partial)} characters",
        next_step="raise the limit (max_tokens), lower the effort, or split the problem",
        provider=call.provider,
        partial=call.partial,
        request_id=call.request_id,
    )


def refused(call: Call, category: str = "", explanation: str = "") -> RefusedError:
    """Return the error of a model that declined."""
    error = RefusedError(
        f"{call.model} declined to answer" + (f" ({category})" if category else ""),
        rule="a refusal is not sent again",
        received=_short(explanation) or None,
        next_step="reword the intent, or use another model or provider",
        provider=call.provider,
        partial=call.partial,
        request_id=call.request_id,
    )
    error.category = category
    return error


def not_this_protocol(call: Call, received: str, status: int | None = None) -> UnexpectedResponseError:
    """Return the error of an answer that is not of the expected protocol."""
    return _unexpected(call, received, status)


_CHECK_KEY = "check the key and where it comes from: docs/guide/providers.md, Keys"


def _from_status(error: BaseException, status: int | None, response: Any, call: Call) -> RemoteError:
    headers: Mapping[str, str] = getattr(response, "headers", None) or {}
    in_stream = status is None or status < 300  # an error event inside a stream that began well
    call.request_id = str(
        getattr(error, "request_id", None) or headers.get("request-id") or headers.get("x-request-id") or ""
    )
    body = getattr(error, "body", None)
    if status == 407:
        return _from_transport(error, call)
    extra: dict[str, Any] = {} if in_stream else {"retry_after_s": retry_after_s(headers, time.time())}
    if headers.get("x-should-retry") == "false":
        extra["is_transient"] = False
    return from_body(body if body is not None else str(error), call, None if in_stream else status, **extra)


def _describe(kind: type[RemoteError], call: Call, message: str) -> tuple[str, str | None, str | None]:
    where = network.host_of(call.base_url)
    key = f"the key from {call.key_origin}" if call.key_origin else "the request, which carried no key,"
    texts: dict[type[RemoteError], tuple[str, str | None, str | None]] = {
        AuthenticationError: (f"{where} does not accept {key}", None, _CHECK_KEY),
        PermissionDeniedError: (
            f"{where} does not allow this with {key}",
            None,
            f"check that the key's project may use {call.model}, and that the provider serves your region",
        ),
        UnknownModelError: (f"{where} has no model `{call.model}`", None, _suggest_model(call)),
        BadRequestError: (f"{where} refuses the request", None, "correct the setting that the message names"),
        ContextTooLongError: (
            f"the prompt does not fit {call.model}",
            None,
            "shorten the intent and its context, or use a model with a larger context",
        ),
        RateLimitError: (
            f"{where} limits the rate of requests for {call.model}",
            None,
            "run the cell again in a minute, or use another model",
        ),
        QuotaExceededError: (
            f"no credit or budget is left for {key} at {where}",
            "waiting does not help: it is not sent again",
            "add credit or raise the limit in the provider's billing page, or use another provider",
        ),
        ServerError: (f"{where} failed", None, "run the cell again"),
        OverloadedError: (
            f"{call.model} is overloaded at {where}",
            None,
            "run the cell again later, or use another model",
        ),
        ProviderTimeoutError: (f"{where} gave up waiting", None, "run the cell again"),
        StreamCutError: (f"{where} reports that the connection was closed", None, "run the cell again"),
        UnexpectedResponseError: (
            f"{where} does not answer like {call.provider}",
            f"the base URL is {call.base_url}",
            "correct the base URL (for OpenAI-compatible servers it usually ends in /v1)",
        ),
    }
    return texts[kind]


def _suggest_model(call: Call) -> str:
    known = load_models().of(call.provider)
    close = difflib.get_close_matches(call.model, known, n=1, cutoff=0.5)
    if close and close[0] != call.model:
        return f"did you mean `{close[0]}`?"
    return f"known here: {', '.join(known)}" if known else "name a model that the server lists"


def _unexpected(call: Call, received: str, status: int | None) -> UnexpectedResponseError:
    what, rule, next_step = _describe(UnexpectedResponseError, call, "")
    return UnexpectedResponseError(
        what,
        rule=rule,
        received=_short(received),
        next_step=next_step,
        provider=call.provider,
        partial=call.partial,
        status=status,
        request_id=call.request_id,
    )


def _bad_url(error: BaseException, call: Call) -> RemoteError:
    return UnexpectedResponseError(
        "the base URL cannot be used",
        rule="https://host/path, or http:// for a server on this machine",
        received=f"{call.base_url}: {error}",
        next_step="correct the base URL",
        provider=call.provider,
    )


def _timeout(error: BaseException, call: Call) -> RemoteError:
    names = {cls.__name__ for e in _chain(error) for cls in type(e).__mro__}
    host = network.host_of(call.base_url)
    if names & {"ConnectTimeout", "PoolTimeout"}:
        return _network_error(f"no connection to {host}", "the connection timed out", call)
    timeout = ProviderTimeoutError(
        f"{host} was silent for {call.read_timeout_s:g} s",
        received=f"{len(call.partial)} characters of a reply" if call.is_streaming else "no answer",
        next_step="run the cell again, or raise read_timeout_s for a slow model",
        provider=call.provider,
        partial=call.partial,
        request_id=call.request_id,
    )
    timeout.host, timeout.cause = host, "read timeout"
    return timeout


def _from_transport(error: BaseException, call: Call) -> RemoteError:
    chain = list(_chain(error))
    names = {cls.__name__ for e in chain for cls in type(e).__mro__}
    if "UnsupportedProtocol" in names or "LocalProtocolError" in names:
        return _bad_url(chain[-1], call)
    cause = str(chain[-1]) or str(error)
    if call.is_streaming:
        return stream_cut(call, _short(cause))
    return _network_error(f"{network.host_of(call.base_url)} cannot be reached", cause, call)


def _network_error(what: str, cause: str, call: Call) -> NetworkError:
    error = NetworkError(
        what,
        received=_short(cause),
        next_step=network.hint(call.base_url, cause),
        is_transient=not network.is_permanent(cause),
        provider=call.provider,
        partial=call.partial,
    )
    error.host, error.cause = network.host_of(call.base_url), redact(cause)
    return error


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)


def _short(text: str, limit: int = 400) -> str:
    # Redacted before it is cut: half a key no longer looks like one.
    text = " ".join(redact(text).split())
    return text if len(text) <= limit else text[: limit - 1] + "…"
