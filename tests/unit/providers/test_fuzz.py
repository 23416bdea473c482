"""Whatever a server sends, a stream ends in a reply or in one error of ours."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from llmkernel.providers.base import Reply
from llmkernel.providers.errors import RemoteError, UnexpectedResponseError
from tests.unit.providers.support import PROVIDERS, REQUEST, make
from tests.wire.protocols import PROTOCOLS
from tests.wire.scripts import Script, refusal, reply
from tests.wire.server import WireServer

PATHS = {
    "claude": "/v1/messages",
    "codex": "/v1/responses",
    "openai-compatible": "/v1/chat/completions",
}
REPLIES = [reply("ab", thinking="c", chunk=1), refusal(), reply("ab", stop="max_tokens"), reply("")]


def blocks(name):
    """The events of some good replies, as text."""
    events = [e for r in REPLIES for e in PROTOCOLS[PATHS[name]](r, {"model": "m"}) if isinstance(e, bytes)]
    return [e.decode() for e in events]


def places(value, path=()):
    """Yield the path of every value in `value`."""
    yield path
    if isinstance(value, dict | list):
        for name, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(inner, (*path, name))


def mutate(block, cut, place, junk):
    """Break one event: cut its JSON, or replace one of its values, however deep."""
    head, _, data = block.partition("data: ")
    if cut is not None:
        return f"{head}data: {data[: cut % (len(data) + 1)]}\n\n"
    try:
        value = json.loads(data)
    except ValueError:
        return block
    paths = list(places(value))[1:]
    *path, name = paths[place % len(paths)]
    inner = value
    for step in path:
        inner = inner[step]
    inner[name] = junk
    return f"{head}data: {json.dumps(value)}\n\n"


JUNK = st.none() | st.integers() | st.text(max_size=5) | st.lists(st.integers(), max_size=2) | st.just({})


@pytest.fixture(scope="module")
def server():
    with WireServer() as running:
        yield running


@pytest.mark.parametrize("name", PROVIDERS)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_stream_ends_in_a_reply_or_an_error_of_ours(name, server, data):
    good = st.sampled_from(blocks(name))
    broken = st.builds(mutate, good, st.none() | st.integers(0, 500), st.integers(0, 99), JUNK)
    noise = (
        st.text(max_size=20).map(lambda t: f"data: {t}\n\n")
        | st.just(": comment\n\n")
        | st.just("event: x\n")
    )
    body = "".join(data.draw(st.lists(good | broken | noise, max_size=12)))
    server.queue(Script(raw=body))

    with pytest.MonkeyPatch.context() as patch:
        provider = make(name, server, patch, max_retries=0)
        # A stream that is cut before any text is begun again: the same answer each time.
        server.queue(Script(raw=body), Script(raw=body))
        try:
            events = list(provider.stream(REQUEST))
        except RemoteError as error:
            assert error.provider == name  # noqa: PT017 - either outcome is right
        else:
            assert isinstance(events[-1], Reply)
            assert not any(isinstance(v, Reply) for v in events[:-1])
    server._state.scripts.clear()


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_piece_of_text_that_is_none_is_an_unexpected_response(name, server, monkeypatch):
    events = PROTOCOLS[PATHS[name]](reply("a piece", chunk=99), {"model": "m"})
    body = b"".join(event for event in events if isinstance(event, bytes)).decode()
    server.queue(Script(raw=body.replace('"a piece"', "5")))

    with pytest.raises(UnexpectedResponseError, match="malformed event"):
        list(make(name, server, monkeypatch).stream(REQUEST))
