"""What goes wrong at a server or on the way to it, with the real SDK clients; no piece of a key shows."""

from __future__ import annotations

import logging
import pickle
import socket
import sys
import traceback

import pytest

from llmkernel.errors import ConfigurationError, LLMKernelError
from llmkernel.providers import errors as e
from llmkernel.providers.base import Message, Request, TextDelta, Waiting
from tests.unit.providers.support import KEYS, PROVIDERS, REQUEST, FakeClock, last, make
from tests.wire.scripts import (
    CLEAN_END,
    CUT,
    SILENCE,
    Script,
    anthropic_error,
    http_error,
    openai_error,
    reply,
)

OVERLOADED = {"type": "overloaded_error", "code": "server_is_overloaded", "message": "Overloaded"}


def error_script(name, status, kind, code, message, **headers):
    """An HTTP error in the words of the protocol that the provider `name` speaks."""
    if name == "claude":
        return anthropic_error(status, kind, message, **headers)
    return openai_error(status, code, message, **headers)


def fail(provider, request=REQUEST):
    """Run `request` and return (error, events before it)."""
    events = []
    with pytest.raises(LLMKernelError) as caught:
        for event in provider.stream(request):
            events.append(event)  # noqa: PERF402 - the events before the failure matter
    return caught.value, events


@pytest.mark.parametrize("name", PROVIDERS)
@pytest.mark.parametrize(
    ("status", "kind", "code", "message", "expected"),
    [
        (401, "authentication_error", "invalid_api_key", "invalid x-api-key", e.AuthenticationError),
        (403, "permission_error", "unsupported_country", "not allowed", e.PermissionDeniedError),
        (404, "not_found_error", "model_not_found", "model: wire-model does not exist", e.UnknownModelError),
        (400, "invalid_request_error", "invalid_value", "max_tokens: must be > 0", e.BadRequestError),
        (
            400,
            "invalid_request_error",
            "context_length_exceeded",
            "prompt is too long: 9 tokens > 8",
            e.ContextTooLongError,
        ),
        (
            413,
            "request_too_large",
            "request_too_large",
            "Request exceeds the maximum size",
            e.ContextTooLongError,
        ),
        (402, "billing_error", "insufficient_quota", "out of credit", e.QuotaExceededError),
        (
            429,
            "billing_error",
            "insufficient_quota",
            "You exceeded your current quota, check billing",
            e.QuotaExceededError,
        ),
        (
            400,
            "invalid_request_error",
            "billing_not_active",
            "Your credit balance is too low to access the API",
            e.QuotaExceededError,
        ),
    ],
)
def test_a_permanent_failure_has_its_class_and_is_not_retried(
    name, status, kind, code, message, expected, wire_server, monkeypatch
):
    wire_server.queue(error_script(name, status, kind, code, message))
    clock = FakeClock()

    error, events = fail(make(name, wire_server, monkeypatch, clock=clock))

    assert type(error) is expected
    assert (error.provider, error.status, error.request_id) == (name, status, "req_wire")
    assert events == []
    assert clock.slept == 0
    assert len(wire_server.requests) == 1
    assert message.split(":")[0] in str(error)
    assert error.next_step


@pytest.mark.parametrize("name", PROVIDERS)
@pytest.mark.parametrize(
    ("status", "kind", "code", "expected"),
    [
        (429, "rate_limit_error", "rate_limit_exceeded", e.RateLimitError),
        (500, "api_error", "server_error", e.ServerError),
        (502, "api_error", None, e.ServerError),
        (503, "overloaded_error", "server_is_overloaded", e.OverloadedError),
        (529, "overloaded_error", None, e.OverloadedError),
    ],
)
def test_a_transient_failure_is_retried_and_then_raised(
    name, status, kind, code, expected, wire_server, monkeypatch
):
    wire_server.queue(*(error_script(name, status, kind, code, "later") for _ in range(3)))
    clock = FakeClock()

    error, events = fail(make(name, wire_server, monkeypatch, clock=clock, max_retries=2))

    assert type(error) is expected
    assert [type(v) for v in events] == [Waiting, Waiting]
    assert clock.slept == pytest.approx(sum(v.seconds for v in events))
    assert len(wire_server.requests) == 3


@pytest.mark.parametrize("name", PROVIDERS)
@pytest.mark.parametrize("headers", [{"retry_after": "7"}, {"retry_after_ms": "7000", "retry_after": "90"}])
def test_a_rate_limit_waits_as_long_as_asked_and_goes_on(name, headers, wire_server, monkeypatch):
    wire_server.queue(
        error_script(name, 429, "rate_limit_error", "rate_limit_exceeded", "slow down", **headers),
        reply("done"),
    )
    clock = FakeClock()

    events = list(make(name, wire_server, monkeypatch, clock=clock).stream(REQUEST))

    assert events[0] == Waiting(7.0, "rate limit")
    assert clock.slept == pytest.approx(7.0)
    assert last(events).text == "done"


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_wait_beyond_the_cap_is_left_to_the_user(name, wire_server, monkeypatch):
    wire_server.queue(
        error_script(name, 429, "rate_limit_error", "rate_limit_exceeded", "tomorrow", retry_after="7200")
    )
    clock = FakeClock()

    error, events = fail(make(name, wire_server, monkeypatch, clock=clock))

    assert type(error) is e.RateLimitError
    assert (error.retry_after_s, events, clock.slept) == (7200.0, [], 0)
    assert "7200 s" in str(error)


def test_a_server_that_says_not_to_retry_is_believed(wire_server, monkeypatch):
    wire_server.queue(anthropic_error(500, "api_error", "no", x_should_retry="false"))

    error, events = fail(make("claude", wire_server, monkeypatch))

    assert (type(error), events) == (e.ServerError, [])


@pytest.mark.parametrize("name", PROVIDERS)
def test_an_overload_inside_the_stream_before_any_text_is_retried(name, wire_server, monkeypatch):
    wire_server.queue(Script(stream_error=OVERLOADED), reply("second try"))

    events = list(make(name, wire_server, monkeypatch).stream(REQUEST))

    assert [v.reason for v in events if isinstance(v, Waiting)] == ["overloaded"]
    assert last(events).text == "second try"


@pytest.mark.parametrize("name", PROVIDERS)
def test_an_overload_after_text_keeps_the_text_and_is_not_retried(name, wire_server, monkeypatch):
    wire_server.queue(reply("__global__ void k()", stream_error=OVERLOADED, break_after=11), reply("no"))

    error, events = fail(make(name, wire_server, monkeypatch))

    assert type(error) is e.OverloadedError
    assert error.partial == "__global__ " == "".join(v.text for v in events if isinstance(v, TextDelta))
    assert len(wire_server.requests) == 1


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        ({"code": "server_error", "message": "oops"}, e.ServerError),
        ({"code": "rate_limit_exceeded", "message": "oops"}, e.RateLimitError),
        ({"code": "invalid_prompt", "message": "oops"}, e.BadRequestError),
    ],
)
def test_a_failed_response_of_codex_has_its_class(failure, expected, wire_server, monkeypatch):
    wire_server.queue(reply("text", failed=failure))

    error, _ = fail(make("codex", wire_server, monkeypatch))

    assert type(error) is expected
    assert error.partial == "text"


@pytest.mark.parametrize("name", PROVIDERS)
@pytest.mark.parametrize("broken", [CUT, CLEAN_END])
def test_a_stream_that_ends_early_keeps_the_text(name, broken, wire_server, monkeypatch):
    wire_server.queue(reply("__global__ void k() {}", broken=broken, break_after=14))

    error, events = fail(make(name, wire_server, monkeypatch))

    assert type(error) is e.StreamCutError
    assert error.partial == "__global__ voi"
    assert not any(isinstance(v, Waiting) for v in events)


@pytest.mark.parametrize("name", PROVIDERS)
@pytest.mark.parametrize("broken", [CUT, CLEAN_END])
def test_a_stream_that_ends_before_any_text_is_begun_again(name, broken, wire_server, monkeypatch):
    wire_server.queue(reply("x", broken=broken, break_after=0), reply("whole"))

    assert last(make(name, wire_server, monkeypatch).stream(REQUEST)).text == "whole"


@pytest.mark.parametrize(("name", "stop"), [("claude", "pause_turn"), ("claude", "a_new_reason")])
def test_a_stop_reason_that_is_not_known_is_no_reply(name, stop, wire_server, monkeypatch):
    wire_server.queue(reply("text", stop=stop))

    error, _ = fail(make(name, wire_server, monkeypatch))

    assert type(error) is e.UnexpectedResponseError
    assert stop in str(error)
    assert error.partial == "text"


@pytest.mark.parametrize("name", PROVIDERS)
def test_silence_is_a_timeout_that_keeps_the_text(name, wire_server, monkeypatch):
    wire_server.queue(reply("__global__", broken=SILENCE, break_after=4))

    error, _ = fail(make(name, wire_server, monkeypatch, read_timeout_s=0.2))

    assert type(error) is e.ProviderTimeoutError
    assert error.partial == "__gl"
    assert "0.2 s" in str(error)
    assert wire_server.hung_up.wait(5)


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_dead_port_names_the_host_and_the_cause(name, wire_server, monkeypatch):
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        port = reserved.getsockname()[1]
        clock = FakeClock()

        error, events = fail(
            make(name, wire_server, monkeypatch, clock=clock, base_url=f"http://127.0.0.1:{port}/v1")
        )

    assert type(error) is e.NetworkError
    assert error.host == f"127.0.0.1:{port}"
    assert "refused" in error.cause.lower()
    assert [type(v) for v in events] == [Waiting, Waiting]
    assert "Start the server" in error.next_step


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_proxy_that_refuses_is_named_without_its_password(name, wire_server, monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", f"http://me:hunter2hunter2@127.0.0.1:{wire_server.port}")

    error, events = fail(make(name, wire_server, monkeypatch, base_url="https://api.example.com/v1"))

    assert type(error) is e.NetworkError
    assert events == []
    assert f"HTTPS_PROXY (127.0.0.1:{wire_server.port})" in error.next_step
    assert wire_server.requests[0].method == "CONNECT"
    assert "hunter2" not in str(error)


@pytest.mark.parametrize("name", PROVIDERS)
@pytest.mark.parametrize(
    ("proxy", "hint"),
    [("ftp://me:hunter2hunter2@proxy.corp", "http://"), ("socks5://proxy.corp", "socksio")],
)
def test_a_proxy_that_cannot_be_used_is_said_first(name, proxy, hint, wire_server, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setenv("ALL_PROXY", proxy)

    error, events = fail(make(name, wire_server, monkeypatch))

    assert (type(error), events, wire_server.requests) == (e.NetworkError, [], [])
    assert "ALL_PROXY" in str(error)
    assert hint in error.next_step
    assert "hunter2" not in str(error)


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_wrong_base_url_is_not_taken_for_a_missing_model(name, wire_server, monkeypatch):
    error, _ = fail(make(name, wire_server, monkeypatch, base_url=f"{wire_server.url}/wrong"))

    assert type(error) is e.UnexpectedResponseError
    assert f"{wire_server.url}/wrong" in str(error)


@pytest.mark.filterwarnings("ignore:.*unencrypted")
@pytest.mark.parametrize("name", PROVIDERS)
@pytest.mark.parametrize("url", ["ftp://example.com", "api.example.com/v1", "http://[broken/v1"])
def test_a_base_url_that_is_none_is_one_error(name, url, wire_server, monkeypatch):
    error, _ = fail(make(name, wire_server, monkeypatch, base_url=url))

    assert isinstance(error, e.UnexpectedResponseError | e.NetworkError)
    assert url.partition("/v1")[0] in str(error)


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_login_page_in_place_of_a_stream(name, wire_server, monkeypatch):
    wire_server.queue(reply("x", content_type="text/html"))

    error, _ = fail(make(name, wire_server, monkeypatch))

    assert type(error) is e.UnexpectedResponseError
    assert "text/html" in str(error)


@pytest.mark.parametrize("name", PROVIDERS)
def test_an_error_page_of_a_gateway_is_a_server_failure(name, wire_server, monkeypatch):
    wire_server.queue(http_error(502, "<html>Bad Gateway: no such model</html>"))

    error, _ = fail(make(name, wire_server, monkeypatch, max_retries=0))

    assert type(error) is e.ServerError


def test_a_key_that_would_travel_unencrypted_is_warned_about(wire_server, monkeypatch):
    provider = make("claude", wire_server, monkeypatch, base_url="http://models.invalid")

    with pytest.warns(UserWarning, match="unencrypted") as caught:
        fail(provider)

    assert KEYS["claude"] not in str(caught[0].message)


def test_a_misspelt_model_gets_a_suggestion(wire_server, monkeypatch):
    wire_server.queue(anthropic_error(404, "not_found_error", "model: claude-opus-55"))

    error, _ = fail(make("claude", wire_server, monkeypatch, model="claude-opus-55"))

    assert error.next_step == "Did you mean `claude-opus-5-5`?"


def test_an_unknown_effort_is_refused_before_anything_is_sent(wire_server, monkeypatch):
    request = Request("", (Message("user", "x"),), "claude-opus-5-5", "hihg")

    error, _ = fail(make("claude", wire_server, monkeypatch), request)

    assert isinstance(error, ConfigurationError)
    assert "Did you mean" in str(error)
    assert wire_server.requests == []


@pytest.mark.parametrize("name", ["claude", "codex"])
def test_without_a_key_nothing_is_sent(name, wire_server, monkeypatch):
    provider = make(name, wire_server, monkeypatch)
    for variable in provider.key_variables:
        monkeypatch.delenv(variable, raising=False)

    error, _ = fail(provider)

    assert type(error) is e.MissingKeyError
    assert provider.key_variables[0] in str(error)
    assert wire_server.requests == []


def test_a_missing_sdk_says_what_to_install(wire_server, monkeypatch):
    monkeypatch.setitem(sys.modules, "anthropic", None)

    error, _ = fail(make("claude", wire_server, monkeypatch))

    assert type(error) is e.SdkMissingError
    assert "pip install --upgrade anthropic" in str(error)


@pytest.mark.parametrize("name", PROVIDERS)
@pytest.mark.parametrize(
    "echo",
    [
        "Incorrect API key provided: {start}***{end}. You can find your key at https://example.com/keys.",
        "invalid x-api-key: {key}",
        "key {start}...{end} is disabled",
        "the header 'Authorization: Bearer {key}' was refused",
    ],
)
def test_an_echoed_key_never_shows(name, echo, wire_server, monkeypatch, caplog):
    key = KEYS[name]
    start, end = key[:9], key[-4:]
    message = echo.format(key=key, start=start, end=end)
    wire_server.queue(error_script(name, 401, "authentication_error", "invalid_api_key", message))
    caplog.set_level(logging.DEBUG)
    provider = make(name, wire_server, monkeypatch)

    error, events = fail(provider)

    shown = "\n".join(
        (
            str(error),
            repr(error),
            repr(vars(error)),
            "".join(traceback.format_exception(error)),
            "".join(error._render_traceback_()),
            repr(events),
            repr(provider),
            repr(vars(provider)),
            pickle.dumps(error).decode("latin-1"),
            caplog.text,
        )
    )
    assert type(error) is e.AuthenticationError
    assert key not in shown
    if name != "openai-compatible" or "provided" in echo:  # a bare word without a key's shape has no fragment
        assert f"{end}" not in str(error)


@pytest.mark.parametrize("name", PROVIDERS)
def test_the_traceback_shows_no_frame_of_an_sdk(name, wire_server, monkeypatch):
    wire_server.queue(error_script(name, 401, "authentication_error", "invalid_api_key", "no"))

    error, _ = fail(make(name, wire_server, monkeypatch))

    # Not even behind the scenes: an SDK's exception holds the request, and with it the key.
    assert error.__cause__ is None
    assert error.__context__ is None
    text = "".join(traceback.format_exception(error))
    assert "site-packages" not in text
    assert "anthropic." not in text
    assert "openai." not in text


def test_errors_survive_pickling(wire_server, monkeypatch):
    wire_server.queue(reply("partial", broken=CUT, break_after=4))
    error, _ = fail(make("claude", wire_server, monkeypatch))

    copy = pickle.loads(pickle.dumps(error))

    assert (type(copy), copy.partial, str(copy)) == (type(error), "part", str(error))
