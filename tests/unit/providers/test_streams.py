"""Whole replies, refusals and truncations, read by the real SDK clients from the local server."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from llmkernel.providers.base import Message, Reply, Request, Started, TextDelta, Thinking, Usage
from llmkernel.providers.errors import RefusedError, TruncatedError, failure_of_reply
from tests.unit.providers.support import KEYS, PROVIDERS, REQUEST, last, make
from tests.wire.scripts import Script, openai_error, refusal, reply

TEXT = "Voilà: ```cuda\n__global__ void k() { /* µs × 1024 – 漢字 */ }\n```"


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_reply_is_streamed_piece_by_piece(name, wire_server, monkeypatch):
    wire_server.queue(reply(TEXT, thinking="One warp a row.", split_bytes=True))

    events = list(make(name, wire_server, monkeypatch).stream(REQUEST))

    assert events[0] == Started("wire-model")
    assert "".join(e.text for e in events if isinstance(e, TextDelta)) == TEXT
    assert sum(isinstance(e, TextDelta) for e in events) > 3
    assert "One warp a row." in [e.text for e in events if isinstance(e, Thinking)]
    assert isinstance(events[-1], Reply)
    assert (events[-1].text, events[-1].stop_reason, events[-1].request_id) == (TEXT, "end", "req_wire")
    # The signature of a thinking block is neither shown nor kept.
    assert "c2lnbmF0dXJl" not in repr(events)


@pytest.mark.parametrize("name", PROVIDERS)
def test_the_reported_model_is_the_servers(name, wire_server, monkeypatch):
    wire_server.queue(reply("x", model="wire-model-2026-11-30"))

    assert last(make(name, wire_server, monkeypatch).stream(REQUEST)).model == "wire-model-2026-11-30"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("claude", Usage(1525, 1200, 300, 42, 17)),
        ("codex", Usage(1525, 1200, 300, 42, 17)),
        ("openai-compatible", Usage(1525, 0, 0, 42, 0)),
    ],
)
def test_usage_counts_cached_input_as_input(name, expected, wire_server, monkeypatch):
    wire_server.queue(reply("x"))

    assert last(make(name, wire_server, monkeypatch).stream(REQUEST)).usage == expected


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_server_that_omits_usage_is_believed_to_have_said_nothing(name, wire_server, monkeypatch):
    wire_server.queue(reply("x", usage={}))

    answer = last(make(name, wire_server, monkeypatch).stream(REQUEST))

    assert answer.usage == Usage()
    assert answer.cost_usd is None


@pytest.mark.parametrize(
    ("name", "model", "cost"),
    [
        # 25 fresh, 1200 read, 300 written, 42 out; the prices of models.toml.
        ("claude", "claude-opus-5-5", (25 * 4 + 1200 * 0.2 + 300 * 5 + 42 * 20) / 1e6),
        ("codex", "gpt-6.2-sol", (25 * 2 + 1200 * 0.1 + 300 * 2.5 + 42 * 10) / 1e6),
    ],
)
def test_a_reply_of_a_priced_model_has_its_cost(name, model, cost, wire_server, monkeypatch):
    wire_server.queue(reply("x"))

    answer = last(make(name, wire_server, monkeypatch, model=model).stream(REQUEST))

    assert answer.cost_usd == pytest.approx(cost)


@pytest.mark.parametrize("name", PROVIDERS)
def test_an_empty_reply_is_a_reply(name, wire_server, monkeypatch):
    wire_server.queue(reply(""))

    assert last(make(name, wire_server, monkeypatch).stream(REQUEST)).text == ""


@pytest.mark.parametrize("name", PROVIDERS)
@pytest.mark.parametrize("stop", ["max_tokens", "context"])
def test_a_truncated_reply_says_so(name, stop, wire_server, monkeypatch):
    wire_server.queue(reply("__global__ void k(", stop=stop))

    answer = last(make(name, wire_server, monkeypatch).stream(REQUEST))

    assert (answer.stop_reason, answer.text) == ("max_tokens", "__global__ void k(")
    error = failure_of_reply(answer, provider=name, max_tokens=100)
    assert isinstance(error, TruncatedError)
    assert error.partial == "__global__ void k("


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_refusal_is_a_reply_without_a_retry(name, wire_server, monkeypatch):
    wire_server.queue(refusal(explanation="Not this one."))

    answer = last(make(name, wire_server, monkeypatch).stream(REQUEST))

    assert (answer.stop_reason, answer.text) == ("refusal", "")
    assert answer.details["explanation"] == "Not this one."
    assert len(wire_server.requests) == 1
    error = failure_of_reply(answer, provider=name)
    assert isinstance(error, RefusedError)
    assert "Not this one." in str(error)


def test_claude_names_the_category_of_a_refusal(wire_server, monkeypatch):
    wire_server.queue(refusal("cyber"))

    answer = last(make("claude", wire_server, monkeypatch).stream(REQUEST))

    assert answer.details["category"] == "cyber"
    assert failure_of_reply(answer).category == "cyber"


def test_claude_survives_a_refusal_whose_block_stops_without_a_start(wire_server, monkeypatch):
    wire_server.queue(refusal(orphan_stop=True))

    assert last(make("claude", wire_server, monkeypatch).stream(REQUEST)).stop_reason == "refusal"


@pytest.mark.parametrize("name", ["codex", "openai-compatible"])
def test_a_content_filter_is_a_refusal(name, wire_server, monkeypatch):
    wire_server.queue(reply("half", stop="content_filter"))

    answer = last(make(name, wire_server, monkeypatch).stream(REQUEST))

    assert (answer.stop_reason, answer.details["category"]) == ("refusal", "content_filter")


def test_a_policy_failure_of_codex_is_a_refusal(wire_server, monkeypatch):
    wire_server.queue(Script(failed={"code": "bio_policy", "message": "Declined."}))

    answer = last(make("codex", wire_server, monkeypatch).stream(REQUEST))

    assert (answer.stop_reason, answer.details["category"]) == ("refusal", "bio_policy")


def test_a_whole_reply_has_no_failure():
    assert failure_of_reply(Reply("x", "end", "m")) is None


def test_what_claude_is_sent(wire_server, monkeypatch):
    wire_server.queue(reply("x"))
    request = Request(
        "Stable.",
        (Message("user", "a"), Message("assistant", "b"), Message("user", "c")),
        "claude-opus-5-5",
        "high",
    )

    list(make("claude", wire_server, monkeypatch).stream(request))

    (received,) = wire_server.requests
    body = received.body
    assert received.path == "/v1/messages"
    assert body["system"] == [{"type": "text", "text": "Stable.", "cache_control": {"type": "ephemeral"}}]
    assert [(m["role"], m["content"]) for m in body["messages"]] == [
        ("user", "a"),
        ("assistant", "b"),
        ("user", "c"),
    ]
    assert (body["model"], body["output_config"]) == ("claude-opus-5-5", {"effort": "high"})
    assert body["thinking"] == {"type": "adaptive", "display": "summarized"}
    assert 0 < body["max_tokens"] <= 128_000
    assert not {"temperature", "tools", "tool_choice"} & body.keys()
    assert KEYS["claude"] in (
        received.headers.get("authorization", "") + received.headers.get("x-api-key", "")
    )


def test_what_codex_is_sent(wire_server, monkeypatch):
    wire_server.queue(reply("x"), reply("x"))
    provider = make("codex", wire_server, monkeypatch)

    list(provider.stream(Request("Stable.", (Message("user", "a"),), effort="xhigh", max_tokens=900)))
    list(provider.stream(Request("Stable.", (Message("user", "b"),))))

    first, second = (r.body for r in wire_server.requests)
    assert wire_server.requests[0].path == "/v1/responses"
    assert (first["instructions"], first["input"]) == ("Stable.", [{"role": "user", "content": "a"}])
    assert first["store"] is False
    assert first["reasoning"] == {"summary": "auto", "effort": "xhigh"}
    assert first["max_output_tokens"] == 900
    assert first["prompt_cache_key"] == second["prompt_cache_key"]
    assert len(first["prompt_cache_key"]) <= 64
    assert "effort" not in second["reasoning"]


def test_what_a_compatible_server_is_sent(wire_server, monkeypatch):
    wire_server.queue(reply("x"))
    monkeypatch.setenv("OPENAI_API_KEY", KEYS["codex"])
    monkeypatch.setenv("OPENAI_ORG_ID", "org-private")

    list(make("openai-compatible", wire_server, monkeypatch).stream(REQUEST))

    (received,) = wire_server.requests
    assert received.path == "/v1/chat/completions"
    assert received.body["messages"][0] == {"role": "system", "content": REQUEST.system}
    assert received.body["stream_options"] == {"include_usage": True}
    # Nothing of the person's OpenAI account goes to another server.
    assert KEYS["codex"] not in str(received.headers)
    assert "org-private" not in str(received.headers)


def test_a_compatible_server_needs_no_key(wire_server, monkeypatch):
    wire_server.queue(reply("x"))
    provider = make("openai-compatible", wire_server, monkeypatch)
    monkeypatch.delenv("LLMKERNEL_OPENAI_API_KEY")

    assert last(provider.stream(REQUEST)).text == "x"


@pytest.mark.filterwarnings("ignore:.*unencrypted")
@pytest.mark.parametrize(
    ("host", "is_sent"),
    [("openrouter.ai", True), ("openrouter.ai.example.com", False), ("notopenrouter.ai", False)],
)
def test_the_key_of_openrouter_goes_to_openrouter_only(host, is_sent, wire_server, monkeypatch):
    wire_server.queue(reply("x"))
    provider = make("openai-compatible", wire_server, monkeypatch, base_url=f"http://{host}/v1")
    monkeypatch.delenv("LLMKERNEL_OPENAI_API_KEY")
    monkeypatch.setenv("OPENROUTER_API_KEY", "sk-or-v1-0123456789abcdef")
    monkeypatch.setenv("HTTP_PROXY", wire_server.url)  # stands in for the network

    list(provider.stream(REQUEST))

    assert ("sk-or-v1-0123456789abcdef" in str(wire_server.requests[0].headers)) == is_sent


def test_a_compatible_server_without_stream_options_is_asked_without(wire_server, monkeypatch):
    wire_server.queue(
        Script(status=400, error={"error": {"message": "unknown field stream_options", "code": 400}}),
        reply("x"),
    )

    assert last(make("openai-compatible", wire_server, monkeypatch).stream(REQUEST)).text == "x"
    assert "stream_options" not in wire_server.requests[1].body


@pytest.mark.parametrize("effort", [None, "low"])
def test_codex_does_without_summaries_where_they_are_refused(effort, wire_server, monkeypatch):
    message = "Your organization must be verified to generate reasoning summaries."
    wire_server.queue(openai_error(400, "unsupported_value", message), reply("x"))
    request = Request("", (Message("user", "a"),), effort=effort)

    assert last(make("codex", wire_server, monkeypatch).stream(request)).text == "x"
    assert wire_server.requests[1].body.get("reasoning") == ({"effort": "low"} if effort else None)


def test_reasoning_between_tags_is_not_part_of_the_reply(wire_server, monkeypatch):
    wire_server.queue(reply("<think>\n```cuda\nwrong\n```</think>\n```cuda\nright\n```", chunk=3))

    events = list(make("openai-compatible", wire_server, monkeypatch).stream(REQUEST))

    assert last(events).text == "\n```cuda\nright\n```"
    assert "wrong" in "".join(e.text for e in events if isinstance(e, Thinking))


@pytest.mark.parametrize("name", PROVIDERS)
def test_streams_run_side_by_side(name, wire_server, monkeypatch):
    wire_server.queue(*(reply("ABCDEF" * 5) for _ in range(8)))
    provider = make(name, wire_server, monkeypatch)

    with ThreadPoolExecutor(4) as pool:
        texts = list(pool.map(lambda _: last(provider.stream(REQUEST)).text, range(8)))

    assert texts == ["ABCDEF" * 5] * 8


@pytest.mark.parametrize(
    ("name", "variable"), [("claude", "ANTHROPIC_BASE_URL"), ("codex", "OPENAI_BASE_URL")]
)
def test_the_address_may_come_from_the_environment(name, variable, wire_server, monkeypatch):
    wire_server.queue(reply("x"))
    provider = make(name, wire_server, monkeypatch)
    monkeypatch.setenv(variable, provider.settings.base_url)

    assert last(type(provider)().stream(REQUEST)).text == "x"


@pytest.mark.filterwarnings("ignore:.*unencrypted")
@pytest.mark.parametrize("name", PROVIDERS)
def test_a_proxy_of_the_environment_is_used(name, wire_server, monkeypatch):
    wire_server.queue(reply("through the proxy"))
    monkeypatch.setenv("HTTP_PROXY", wire_server.url)
    base_url = "http://models.invalid" if name == "claude" else "http://models.invalid/v1"

    assert (
        last(make(name, wire_server, monkeypatch, base_url=base_url).stream(REQUEST)).text
        == "through the proxy"
    )
    assert wire_server.requests[0].path.startswith("http://models.invalid/v1/")


def test_claude_takes_a_bearer_token(wire_server, monkeypatch):
    wire_server.queue(reply("x"))
    provider = make("claude", wire_server, monkeypatch)
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "gateway-token-0123456789")

    assert last(provider.stream(REQUEST)).text == "x"
    assert wire_server.requests[0].headers["authorization"] == "Bearer gateway-token-0123456789"


def test_tokens_are_estimated_without_a_connection(wire_server, monkeypatch):
    provider = make("claude", wire_server, monkeypatch)
    text = "for (int i = threadIdx.x; i < N; i += blockDim.x) acc += x[i];\n" * 200

    tokens = provider.count_tokens(Request(text, (Message("user", text),)))

    assert 0.2 * len(text) * 2 < tokens < 0.4 * len(text) * 2
    assert wire_server.requests == []


def test_a_provider_describes_itself(wire_server, monkeypatch):
    provider = make("claude", wire_server, monkeypatch, model=None)

    assert provider.describe(REQUEST) == "claude · claude-opus-5-5 · medium"
    assert (
        provider.describe(Request("", (), "claude-sonnet-5-5", "max")) == "claude · claude-sonnet-5-5 · max"
    )
