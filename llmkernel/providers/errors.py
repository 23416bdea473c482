"""Every failure of a provider.

The tree::

    ProviderError
    ├── UnknownProviderError      no provider has this name
    ├── SdkMissingError           the provider's SDK is not installed
    ├── MissingKeyError           no key was found
    ├── BudgetReachedError        the notebook's budget has no room for the request
    └── RemoteError               a request was begun; carries provider, status, request_id, partial
        ├── AuthenticationError       the key is not accepted
        ├── PermissionDeniedError     the key may not do this
        ├── UnknownModelError         the server has no such model
        ├── BadRequestError           the server refuses the request
        │   └── ContextTooLongError   the prompt does not fit the model
        ├── RateLimitError            too many requests or tokens a minute
        ├── QuotaExceededError        no credit or budget left: waiting does not help
        ├── ServerError               the server failed
        │   └── OverloadedError       the server has no capacity now
        ├── NetworkError              the server cannot be reached; carries host and cause
        │   └── ProviderTimeoutError  the server is silent
        ├── StreamCutError            the reply ended before its end
        ├── TruncatedError            the reply reached its token limit
        ├── RefusedError              the model declined; carries category
        ├── UnexpectedResponseError   the server does not speak this protocol
        └── SdkError                  the SDK itself failed

A refusal and a truncation are replies (`Reply.stop_reason`), not exceptions, as long as a provider streams
them; the loop raises `RefusedError` and `TruncatedError` (`failure_of_reply`) when it gives up on one.
"""

from __future__ import annotations

from llmkernel.errors import ProviderError
from llmkernel.prompts.redaction import redact
from llmkernel.providers.base import Reply

__all__ = [
    "AuthenticationError",
    "BadRequestError",
    "BudgetReachedError",
    "ContextTooLongError",
    "MissingKeyError",
    "NetworkError",
    "OverloadedError",
    "PermissionDeniedError",
    "ProviderTimeoutError",
    "QuotaExceededError",
    "RateLimitError",
    "RefusedError",
    "RemoteError",
    "SdkError",
    "SdkMissingError",
    "ServerError",
    "StreamCutError",
    "TruncatedError",
    "UnexpectedResponseError",
    "UnknownModelError",
    "UnknownProviderError",
    "failure_of_reply",
]


class UnknownProviderError(ProviderError):
    """No provider has this name."""


class SdkMissingError(ProviderError):
    """The provider's SDK is not installed, or too old."""


class MissingKeyError(ProviderError):
    """No key was found in the environment, the keyring or the key file."""


class BudgetReachedError(ProviderError):
    """The notebook's budget has no room for the request; it was not sent."""


class RemoteError(ProviderError):
    """A request was begun and did not end in a reply. All text is redacted on the way in.

    Attributes
    ----------
    provider : str
        Name of the provider.
    status : int or None
        HTTP status, where there was one.
    request_id : str
        For the provider's support; empty when unknown.
    partial : str
        Text of the reply up to the failure: to be shown, never to be compiled.
    retry_after_s : float or None
        Seconds the server asked to wait.
    is_transient : bool
        The same request may succeed later.
    """

    is_transient_by_default = False

    def __init__(
        self,
        what: str,
        *,
        provider: str = "",
        status: int | None = None,
        request_id: str = "",
        partial: str = "",
        retry_after_s: float | None = None,
        is_transient: bool | None = None,
        rule: str | None = None,
        received: str | None = None,
        next_step: str | None = None,
    ) -> None:
        super().__init__(
            redact(what),
            rule=redact(rule) if rule else None,
            received=redact(received) if received else None,
            next_step=redact(next_step) if next_step else None,
        )
        self.provider = provider
        self.status = status
        self.request_id = request_id
        self.partial = partial
        self.retry_after_s = retry_after_s
        self.is_transient = self.is_transient_by_default if is_transient is None else is_transient


class AuthenticationError(RemoteError):
    """The key is not accepted."""


class PermissionDeniedError(RemoteError):
    """The key is valid but may not do this."""


class UnknownModelError(RemoteError):
    """The server has no such model, or this key may not see it."""


class BadRequestError(RemoteError):
    """The server refuses the request as it is."""


class ContextTooLongError(BadRequestError):
    """The prompt does not fit the model's context, or the server's size limit."""


class RateLimitError(RemoteError):
    """Too many requests or tokens a minute; waiting helps."""

    is_transient_by_default = True


class QuotaExceededError(RemoteError):
    """No credit or budget is left; waiting does not help."""


class ServerError(RemoteError):
    """The server failed."""

    is_transient_by_default = True


class OverloadedError(ServerError):
    """The server has no capacity now."""


class NetworkError(RemoteError):
    """The server cannot be reached.

    Attributes
    ----------
    host : str
        ``host:port`` that was asked.
    cause : str
        The innermost reason, redacted.
    """

    is_transient_by_default = True
    host = ""
    cause = ""


class ProviderTimeoutError(NetworkError):
    """The server accepted the request, or the connection, and then said nothing."""


class StreamCutError(RemoteError):
    """The reply ended before its end; `partial` holds what had arrived."""

    is_transient_by_default = True


class TruncatedError(RemoteError):
    """The reply reached its token limit; `partial` holds it."""


class RefusedError(RemoteError):
    """The model declined to answer.

    Attributes
    ----------
    category : str
        The provider's word for the reason; empty when it gives none.
    """

    category = ""


class UnexpectedResponseError(RemoteError):
    """The server answered something that is not this protocol."""


class SdkError(RemoteError):
    """The SDK failed in a way that is about neither the network nor the server."""


def failure_of_reply(
    reply: Reply, *, provider: str = "", max_tokens: int | None = None
) -> RefusedError | TruncatedError | None:
    """Return the error to raise when nothing more is done about `reply`; None for a whole reply."""
    if reply.stop_reason == "refusal":
        category = str(reply.details.get("category") or "")
        refused = RefusedError(
            f"{reply.model} declined to answer" + (f" ({category})." if category else "."),
            rule="A refusal is not sent again.",
            received=str(reply.details.get("explanation") or "") or None,
            next_step="Reword the intent, or use another model or provider.",
            provider=provider,
            partial=reply.text,
            request_id=reply.request_id,
        )
        refused.category = category
        return refused
    if reply.stop_reason == "max_tokens":
        limit = f" of {max_tokens} tokens" if max_tokens else ""
        return TruncatedError(
            f"The reply of {reply.model} reached its limit{limit}.",
            rule="A truncated reply is never compiled.",
            received=f"{len(reply.text)} characters, {reply.usage.output_tokens} tokens",
            next_step="Raise the limit (max_tokens), lower the effort, or split the problem.",
            provider=provider,
            partial=reply.text,
            request_id=reply.request_id,
        )
    return None
