"""From what the SDKs raise to the errors of this package.

Nothing here imports an SDK: exceptions are recognised by the module and the name of their classes, and by the
attributes that both SDKs document (`status_code`, `response`, `body`).
"""

from __future__ import annotations

import difflib
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from llmkernel.prompts.redaction import redact
from llmkernel.providers import network
from llmkernel.providers.base import Reply, TextDelta
from llmkernel.providers.classify import classify, read_body
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
    RemoteError,
    SdkError,
    ServerError,
    StreamCutError,
    UnexpectedResponseError,
    UnknownModelError,
    failure_of_reply,
)
from llmkernel.providers.models import load_models
from llmkernel.providers.retry import retry_after_s


@dataclass
class Call:
    """One request on its way, for messages.

    Attributes
    ----------
    provider, model, base_url : str
    key_origin : str
        Where the key came from; empty without one.
    pieces : list of str
        Text received so far.
    is_streaming : bool
        The server has begun to answer.
    read_timeout_s : float
    """

    provider: str
    model: str
    base_url: str
    key_origin: str = ""
    pieces: list[str] = field(default_factory=list)
    is_streaming: bool = False
    read_timeout_s: float = 300.0
    request_id: str = ""

    def add(self, text: Any) -> TextDelta:
        """Keep a piece of the reply and return its event."""
        if not isinstance(text, str):
            raise TypeError(f"a piece of text is of type {type(text).__name__}")
        self.pieces.append(text)
        return TextDelta(text)

    @property
    def partial(self) -> str:
        """The text received so far."""
        return "".join(self.pieces)


def translate(error: BaseException, call: Call) -> RemoteError | MissingKeyError:
    """Return the error of this package that says what `error` means for `call`.

    Raise it outside the handler of `error`: the SDK's frames say nothing to a user, and its exception holds the
    request with the key.
    """
    names = {cls.__name__ for cls in type(error).__mro__}
    status = getattr(error, "status_code", None)
    response = getattr(error, "response", None)
    if status is None and "HTTPStatusError" in names:
        status = getattr(response, "status_code", None)
    if names & {"CredentialsError", "SubjectTokenProviderError"}:
        return MissingKeyError(
            f"The credentials of {call.provider} cannot be loaded.",
            received=redact(str(error)),
            next_step=_CHECK_KEY,
        )
    if "APIResponseValidationError" in names:
        return _unexpected(call, str(error), status)
    if isinstance(status, int) or "APIStatusError" in names:
        return _from_status(error, status, response, call)
    if names & {"LengthFinishReasonError"}:
        return _given_up(Reply(call.partial, "max_tokens", call.model), call)
    if names & {"ContentFilterFinishReasonError"}:
        return _given_up(
            Reply(call.partial, "refusal", call.model, details={"category": "content_filter"}), call
        )
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
    if call.is_streaming and not names & {"APIError", "StreamError", "OpenAIError", "AnthropicError"}:
        return _unexpected(call, f"a malformed event: {type(error).__name__}: {error}", None)
    return SdkError(
        f"The SDK of {call.provider} failed: {type(error).__name__}.",
        provider=call.provider,
        received=_short(str(error)),
        partial=call.partial,
        next_step="Run `pip install --upgrade anthropic openai`; if it stays, report it with this message.",
    )


def from_body(body: object, call: Call, status: int | None = None, **extra: Any) -> RemoteError:
    """Return the error that an error object (in a body, or as an event inside a stream) stands for."""
    codes, message = read_body(body)
    kind = classify(status, codes, message, is_structured=isinstance(body, Mapping))
    what, rule, next_step = _describe(kind, call)
    label = " · ".join([*([f"HTTP {status}"] if status else []), *sorted(codes)])
    received = _short(": ".join(part for part in (label, message) if part))
    common = {
        "provider": call.provider,
        "partial": call.partial,
        "request_id": call.request_id,
        "status": status,
    }
    return kind(what, rule=rule, received=received, next_step=next_step, **{**common, **extra})


def stream_cut(call: Call, received: str = "the stream ended without a stop reason") -> StreamCutError:
    """Return the error of a reply that ended before its end."""
    return StreamCutError(
        f"The reply of {call.provider} was cut off after {len(call.partial)} characters.",
        rule="A reply counts only when the provider says why it stopped.",
        received=received,
        next_step="Run the cell again; if it happens again, look at proxies between here and the provider.",
        provider=call.provider,
        partial=call.partial,
        request_id=call.request_id,
    )


def proxy_error(call: Call, received: str, next_step: str) -> NetworkError:
    """Return the error of a proxy setting that cannot be used."""
    error = _network_error("A proxy of the environment cannot be used.", received, call)
    error.next_step, error.is_transient = next_step, False
    return error


def not_this_protocol(call: Call, received: str, status: int | None = None) -> UnexpectedResponseError:
    """Return the error of an answer that is not of the expected protocol."""
    return _unexpected(call, received, status)


_CHECK_KEY = "Check the key; `llmkernel doctor` shows where each one is found."


def _given_up(reply: Reply, call: Call) -> RemoteError:
    error = failure_of_reply(reply, provider=call.provider)
    assert error is not None
    return error


def _from_status(error: BaseException, status: int | None, response: Any, call: Call) -> RemoteError:
    headers: Mapping[str, str] = getattr(response, "headers", None) or {}
    in_stream = status is None or status < 300  # an error event inside a stream that began well
    call.request_id = str(
        getattr(error, "request_id", None) or headers.get("request-id") or headers.get("x-request-id") or ""
    )
    body = getattr(error, "body", None)
    extra: dict[str, Any] = {} if in_stream else {"retry_after_s": retry_after_s(headers, time.time())}
    if headers.get("x-should-retry") == "false" or status == 407:
        extra["is_transient"] = False
    return from_body(body if body is not None else str(error), call, None if in_stream else status, **extra)


def _describe(kind: type[RemoteError], call: Call) -> tuple[str, str | None, str | None]:
    where = network.host_of(call.base_url)
    key = f"the key from {call.key_origin}" if call.key_origin else "a request without a key"
    texts: dict[type[RemoteError], tuple[str, str | None, str | None]] = {
        AuthenticationError: (f"{where} does not accept {key}.", None, _CHECK_KEY),
        PermissionDeniedError: (
            f"{where} does not allow this with {key}.",
            None,
            f"Check that the key's project may use {call.model}, and that the provider serves your region.",
        ),
        UnknownModelError: (f"{where} has no model `{call.model}`.", None, _suggest_model(call)),
        BadRequestError: (
            f"{where} refuses the request.",
            None,
            "Correct the setting that the message names.",
        ),
        ContextTooLongError: (
            f"The prompt does not fit {call.model}.",
            None,
            "Shorten the intent and its context, or use a model with a larger context.",
        ),
        RateLimitError: (
            f"{where} limits the rate of requests for {call.model}.",
            None,
            "Run the cell again in a minute, or use another model.",
        ),
        QuotaExceededError: (
            f"No credit or budget is left for {key} at {where}.",
            "Waiting does not help: it is not sent again.",
            "Add credit or raise the limit in the provider's billing page, or use another provider.",
        ),
        ServerError: (f"{where} failed.", None, "Run the cell again."),
        OverloadedError: (
            f"{call.model} is overloaded at {where}.",
            None,
            "Run the cell again later, or use another model.",
        ),
        NetworkError: (
            f"{where} cannot be reached.",
            "A proxy on the way asks for credentials.",
            "Put them into HTTPS_PROXY, as your organisation says.",
        ),
        ProviderTimeoutError: (f"{where} gave up waiting.", None, "Run the cell again."),
        StreamCutError: (f"{where} reports that the connection was closed.", None, "Run the cell again."),
        UnexpectedResponseError: (
            f"{where} does not answer like {call.provider}.",
            f"The base URL is {call.base_url}.",
            "Correct the base URL; for OpenAI-compatible servers it usually ends in /v1.",
        ),
    }
    return texts[kind]


def _suggest_model(call: Call) -> str:
    known = load_models().of(call.provider)
    close = difflib.get_close_matches(call.model, known, n=1, cutoff=0.5)
    if close and close[0] != call.model:
        return f"Did you mean `{close[0]}`?"
    return f"Known here: {', '.join(known)}." if known else "Name a model that the server lists."


def _unexpected(call: Call, received: str, status: int | None) -> UnexpectedResponseError:
    what, rule, next_step = _describe(UnexpectedResponseError, call)
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
        "The base URL cannot be used.",
        rule="A base URL is https://host/path, or http:// for a server on this machine.",
        received=f"{call.base_url}: {error}",
        next_step="Correct the base URL.",
        provider=call.provider,
    )


def _timeout(error: BaseException, call: Call) -> RemoteError:
    names = {cls.__name__ for e in _chain(error) for cls in type(e).__mro__}
    host = network.host_of(call.base_url)
    if names & {"ConnectTimeout", "PoolTimeout"}:
        return _network_error(f"No connection to {host}.", "the connection timed out", call)
    timeout = ProviderTimeoutError(
        f"{host} was silent for {call.read_timeout_s:g} s.",
        received=f"{len(call.partial)} characters of a reply" if call.is_streaming else "no answer",
        next_step="Run the cell again, or raise read_timeout_s for a slow model.",
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
    return _network_error(f"{network.host_of(call.base_url)} cannot be reached.", cause, call)


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
