"""Whole replies, refusals and truncations, read by the real SDK clients from the local server."""

from __future__ import annotations

import pytest

from llmkernel.providers.base import Message, Reply, Request, Started, TextDelta, Thinking
from tests.unit.providers.support import PROVIDERS, last, make
from tests.wire.scripts import Script, refusal, reply

REQUEST = Request("You write CUDA.", (Message("user", "softmax, please"),), max_tokens=64_000)
TEXT = "Voilà: ```cuda\n__global__ void k() { /* µs × 1024 – 漢字 */ }\n```"


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_reply_is_streamed_piece_by_piece(name, wire_server, monkeypatch):
    wire_server.queue(reply(TEXT, thinking="One warp a row.", split_bytes=True))

    events = list(make(name, wire_server, monkeypatch).stream(REQUEST))

    assert isinstance(events[0], Started)
    assert "".join(e.text for e in events if isinstance(e, TextDelta)) == TEXT
    assert sum(isinstance(e, TextDelta) for e in events) > 3
    assert "One warp a row." in [e.text for e in events if isinstance(e, Thinking)]
    assert isinstance(events[-1], Reply)
    assert (events[-1].text, events[-1].stop_reason, events[-1].request_id) == (TEXT, "end", "req_wire")
    assert "c2lnbmF0dXJl" not in repr(events)
