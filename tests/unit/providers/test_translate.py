"""Every exception class of both SDKs and of their transport has a class of ours."""

from __future__ import annotations

import importlib
import inspect
import json

import anthropic
import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmkernel.errors import ProviderError
from llmkernel.providers import errors as e
from llmkernel.providers.classify import classify, read_body
from llmkernel.providers.translate import Call, from_body, translate

MODULES = ("anthropic._exceptions", "openai._exceptions", "httpx2._exceptions")
REQUEST = httpx2.Request(
    "POST", "https://api.example.com/v1/x", headers={"authorization": "Bearer sk-ant-secret-secret"}
)


def exception_classes():
    for name in MODULES:
        for cls in vars(importlib.import_module(name)).values():
            is_error = inspect.isclass(cls) and issubclass(cls, Exception) and not issubclass(cls, Warning)
            if is_error and cls.__module__ == name:
                yield cls


def instance(cls):
    """Build `cls` as its SDK does, from whatever its constructor asks for."""
    status = getattr(cls, "status_code", None)
    status = status if isinstance(status, int) else 500
    response = httpx2.Response(status, request=REQUEST, headers={"request-id": "req_1"})
    values = {
        "message": "went wrong",
        "request": REQUEST,
        "response": response,
        "body": {"error": {"type": "some_error", "message": "went wrong"}},
        "completion": type("Completion", (), {"usage": None})(),
        "unsent_messages": [],
    }
    parameters = inspect.signature(cls).parameters.values()
    arguments = {p.name: values[p.name] for p in parameters if p.name in values}
    if not arguments and any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return cls("went wrong")
    return cls(**arguments)


def call(**changes):
    return Call("claude", "some-model", "https://api.example.com", key_origin="$ANTHROPIC_API_KEY", **changes)


CLASSES = list(exception_classes())

EXPECTED = {
    "BadRequestError": e.BadRequestError,
    "AuthenticationError": e.AuthenticationError,
    "OAuthError": e.AuthenticationError,
    "PaymentRequiredError": e.QuotaExceededError,
    "PermissionDeniedError": e.PermissionDeniedError,
    "NotFoundError": e.UnexpectedResponseError,
    "RequestTimeoutError": e.ProviderTimeoutError,
    "ConflictError": e.ServerError,
    "PreconditionFailedError": e.BadRequestError,
    "ContentTooLargeError": e.ContextTooLongError,
    "UnprocessableEntityError": e.BadRequestError,
    "RateLimitError": e.RateLimitError,
    "RequestHeaderFieldsTooLargeError": e.BadRequestError,
    "ClientClosedRequestError": e.StreamCutError,
    "InternalServerError": e.ServerError,
    "HTTPNotImplementedError": e.ServerError,
    "ServiceUnavailableError": e.OverloadedError,
    "GatewayTimeoutError": e.ServerError,
    "OverloadedError": e.OverloadedError,
    "APIStatusError": e.ServerError,
    "HTTPStatusError": e.ServerError,
    "APIResponseValidationError": e.UnexpectedResponseError,
    "APITimeoutError": e.ProviderTimeoutError,
    "TimeoutException": e.ProviderTimeoutError,
    "ReadTimeout": e.ProviderTimeoutError,
    "WriteTimeout": e.ProviderTimeoutError,
    "ConnectTimeout": e.NetworkError,
    "PoolTimeout": e.NetworkError,
    "APIConnectionError": e.NetworkError,
    "TransportError": e.NetworkError,
    "NetworkError": e.NetworkError,
    "ConnectError": e.NetworkError,
    "ReadError": e.NetworkError,
    "WriteError": e.NetworkError,
    "CloseError": e.NetworkError,
    "ProxyError": e.NetworkError,
    "ProtocolError": e.NetworkError,
    "RemoteProtocolError": e.NetworkError,
    "LocalProtocolError": e.UnexpectedResponseError,
    "UnsupportedProtocol": e.UnexpectedResponseError,
    "InvalidURL": e.UnexpectedResponseError,
    "DecodingError": e.UnexpectedResponseError,
    "TooManyRedirects": e.UnexpectedResponseError,
    "HTTPError": e.UnexpectedResponseError,
    "RequestError": e.UnexpectedResponseError,
    "CredentialsError": e.MissingKeyError,
    "IdentityTokenFileError": e.MissingKeyError,
    "SubjectTokenProviderError": e.MissingKeyError,
    "LengthFinishReasonError": e.TruncatedError,
    "ContentFilterFinishReasonError": e.RefusedError,
    # An error object of unknown type, in a body or an event.
    "APIError": e.ServerError,
    # Misuse of the SDK, or parts of it that are not used here: their class says which.
    "AnthropicError": e.SdkError,
    "OpenAIError": e.SdkError,
    "APIWebhookValidationError": e.SdkError,
    "RetryableError": e.SdkError,
    "InvalidWebhookSignatureError": e.SdkError,
    "WebSocketConnectionClosedError": e.SdkError,
    "WebSocketQueueFullError": e.SdkError,
    "CookieConflict": e.SdkError,
    "StreamError": e.SdkError,
    "StreamConsumed": e.SdkError,
    "StreamClosed": e.SdkError,
    "ResponseNotRead": e.SdkError,
    "RequestNotRead": e.SdkError,
}


def test_no_exception_class_is_unmapped():
    assert {cls.__name__ for cls in CLASSES} <= EXPECTED.keys()


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: f"{cls.__module__.partition('.')[0]}.{cls.__name__}")
def test_each_class_means_what_the_table_says(cls):
    expected = EXPECTED[cls.__name__]
    if cls is anthropic._exceptions.APIWebhookValidationError:
        expected = e.ServerError  # an APIError with a body, as far as anyone can tell

    error = translate(instance(cls), call())

    assert type(error) is expected
    assert error.what
    assert "sk-ant-secret" not in str(error) + repr(vars(error))


@pytest.mark.parametrize("cls", [httpx2.ReadError, httpx2.RemoteProtocolError, anthropic.APIConnectionError])
def test_a_connection_lost_in_mid_stream_is_a_cut_stream(cls):
    error = translate(instance(cls), call(is_streaming=True, pieces=["__global__"]))

    assert type(error) is e.StreamCutError
    assert error.partial == "__global__"


@pytest.mark.parametrize(
    "raised",
    [AttributeError("'NoneType' has no 'type'"), KeyError("delta"), json.JSONDecodeError("bad", "x", 0)],
)
def test_a_malformed_event_is_an_unexpected_response(raised):
    assert type(translate(raised, call(is_streaming=True))) is e.UnexpectedResponseError


@pytest.mark.parametrize(
    ("cause", "hint"),
    [
        ("[SSL: CERTIFICATE_VERIFY_FAILED] self-signed certificate in certificate chain", "SSL_CERT_FILE"),
        ("[Errno -2] Name or service not known", "HTTPS_PROXY"),
        ("[Errno 101] Network is unreachable", "SSL_CERT_FILE"),
    ],
)
def test_a_network_failure_hints_at_its_cause(cause, hint):
    outer = anthropic.APIConnectionError(request=REQUEST)
    outer.__cause__ = httpx2.ConnectError(cause)

    error = translate(outer, call())

    assert type(error) is e.NetworkError
    assert (error.host, error.cause) == ("api.example.com", cause)
    assert hint in error.next_step
    assert error.is_transient == ("SSL" not in cause)


def test_a_proxy_is_not_blamed_for_an_exempt_host(monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.corp:3128")
    monkeypatch.setenv("NO_PROXY", "api.example.com")

    assert "proxy.corp" not in translate(httpx2.ConnectError("refused"), call()).next_step
    monkeypatch.delenv("NO_PROXY")
    assert "HTTPS_PROXY (proxy.corp:3128)" in translate(httpx2.ConnectError("refused"), call()).next_step


NAMES = st.sampled_from(["error", "type", "code", "message", "details", "error_code"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=12),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["error", "type", "code", "message", "details", "error_code"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)


@given(JSON, st.none() | st.integers(300, 599))
def test_any_error_body_becomes_an_error_of_ours(body, status):
    error = from_body(body, call(), status)

    assert isinstance(error, ProviderError)
    assert error.what


@given(st.sampled_from([400, 401, 403, 404, 413, 429, 500, 529]), st.text())
def test_quota_is_never_transient(status, text):
    message = f"{text} You exceeded your current quota {text}"

    assert classify(status, frozenset(), message) is e.QuotaExceededError


def test_both_shapes_of_an_error_object_are_read():
    nested = {"type": "error", "error": {"type": "a", "message": "m", "details": {"error_code": "b"}}}
    flat = {"type": "error", "code": "a", "message": "m"}

    assert read_body(nested) == ({"a", "b"}, "m")
    assert read_body(flat) == ({"a"}, "m")
    assert read_body({"error": "just words"}) == (frozenset(), "just words")


def test_the_tree_at_the_top_of_errors_is_the_tree():
    drawn = [line.split("──")[1].split()[0] for line in e.__doc__.splitlines() if "──" in line]

    assert sorted(drawn) == sorted(n for n in e.__all__ if n[0].isupper())
