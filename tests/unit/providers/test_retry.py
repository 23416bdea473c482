"""Waits: how long, how visible, how interruptible."""

from __future__ import annotations

import signal
import threading
from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmkernel.providers import errors as e
from llmkernel.providers.base import Reply, TextDelta, Waiting
from llmkernel.providers.retry import Clock, RetryPolicy, retry_after_s, stream_with_retries
from tests.unit.providers.support import REQUEST, FakeClock, make
from tests.wire.scripts import SILENCE, anthropic_error, reply

DONE = Reply("ok", "end", "m")


def attempts(*outcomes):
    """An `attempt` that yields or raises each outcome in turn."""
    queue = list(outcomes)

    def attempt():
        for item in queue.pop(0):
            if isinstance(item, Exception):
                raise item
            yield item

    return attempt


@given(st.floats(0, 1e6))
def test_seconds_are_read(seconds):
    assert retry_after_s({"retry-after": str(seconds)}, 0.0) == seconds


@given(st.floats(0, 1e6))
def test_milliseconds_come_first(milliseconds):
    headers = {"retry-after-ms": str(milliseconds), "retry-after": "99"}

    assert retry_after_s(headers, 0.0) == milliseconds / 1000


@given(st.integers(-10_000, 10_000))
def test_an_http_date_is_relative_to_now(offset):
    now = 1_790_000_000.0

    assert retry_after_s({"retry-after": formatdate(now + offset, usegmt=True)}, now) == max(offset, 0)


@given(st.dictionaries(st.sampled_from(["retry-after", "retry-after-ms"]), st.text()))
def test_any_header_gives_a_wait_or_none(headers):
    seconds = retry_after_s(headers, 1_790_000_000.0)

    assert seconds is None or seconds >= 0


def test_back_off_doubles_up_to_a_cap():
    clock = FakeClock()
    policy = RetryPolicy(max_retries=6, base_s=1.0, cap_s=10.0)
    failures = [[e.ServerError("down")] for _ in range(6)]

    events = list(stream_with_retries(attempts(*failures, [DONE]), policy, clock.clock()))

    assert [v.seconds for v in events[:-1]] == [1, 2, 4, 8, 10, 10]
    assert clock.slept == pytest.approx(35)


@given(st.floats(0, 1))
def test_jitter_only_shortens(jitter):
    clock = Clock(now=lambda: 0.0, sleep=lambda _: None, jitter=lambda: jitter)

    first, *_ = stream_with_retries(attempts([e.ServerError("down")], [DONE]), RetryPolicy(base_s=4.0), clock)

    assert 2.0 <= first.seconds <= 4.0


def test_connections_are_retried_less_than_servers():
    policy = RetryPolicy(max_retries=5, max_connection_retries=1)
    failures = [[e.NetworkError("no")], [e.OverloadedError("busy")], [e.NetworkError("no")]]
    events = []

    with pytest.raises(e.NetworkError):
        events.extend(stream_with_retries(attempts(*failures), policy, FakeClock().clock()))


def test_nothing_is_sent_again_after_text():
    attempt = attempts([TextDelta("a"), e.OverloadedError("busy")], [DONE])

    with pytest.raises(e.OverloadedError):
        list(stream_with_retries(attempt, RetryPolicy(), FakeClock().clock()))


def test_what_waiting_cannot_help_is_raised_at_once():
    clock = FakeClock()

    with pytest.raises(e.QuotaExceededError):
        list(
            stream_with_retries(
                attempts([e.QuotaExceededError("empty")], [DONE]), RetryPolicy(), clock.clock()
            )
        )
    assert clock.slept == 0


@given(st.floats(120.01, 1e12))
def test_a_wait_beyond_the_cap_says_when(seconds):
    failure = e.OverloadedError("busy", provider="claude", retry_after_s=seconds)

    with pytest.raises(e.RateLimitError) as caught:
        list(stream_with_retries(attempts([failure], [DONE]), RetryPolicy(), FakeClock().clock()))

    assert caught.value.retry_after_s == seconds
    assert not caught.value.is_transient


def test_an_interrupt_during_a_wait_arrives_at_the_next_slice():
    slices = []

    def sleep(seconds):
        slices.append(seconds)
        if len(slices) == 3:
            raise KeyboardInterrupt

    clock = Clock(now=lambda: 0.0, sleep=sleep, jitter=lambda: 1.0)
    stream = stream_with_retries(
        attempts([e.RateLimitError("slow", retry_after_s=60.0)], [DONE]), RetryPolicy(), clock
    )

    assert next(stream) == Waiting(60.0, "rate limit")
    with pytest.raises(KeyboardInterrupt):
        next(stream)
    assert max(slices) <= 0.3


@pytest.mark.parametrize("name", ["claude", "codex", "openai-compatible"])
def test_an_interrupt_in_mid_stream_closes_the_connection(name, wire_server, monkeypatch):
    wire_server.queue(reply("__global__ void k()", broken=SILENCE, break_after=11))
    provider = make(name, wire_server, monkeypatch)
    received = ""
    main = threading.get_ident()

    with pytest.raises(KeyboardInterrupt):
        for event in provider.stream(REQUEST):
            received += event.text if isinstance(event, TextDelta) else ""
            if received == "__global__ ":
                threading.Timer(0.05, signal.pthread_kill, (main, signal.SIGINT)).start()

    assert wire_server.hung_up.wait(5)
    assert received == "__global__ "


@pytest.mark.parametrize("name", ["claude", "codex", "openai-compatible"])
def test_a_closed_generator_closes_the_connection(name, wire_server, monkeypatch):
    wire_server.queue(reply("x" * 100, broken=SILENCE, break_after=7))
    stream = make(name, wire_server, monkeypatch).stream(REQUEST)
    next(stream)

    stream.close()

    assert wire_server.hung_up.wait(5)


def test_an_interrupt_during_a_wait_sends_nothing_more(wire_server, monkeypatch):
    wire_server.queue(anthropic_error(429, "rate_limit_error", "slow", retry_after="60"), reply("x"))
    clock = FakeClock()
    stream = make("claude", wire_server, monkeypatch, clock=clock).stream(REQUEST)

    assert isinstance(next(stream), Waiting)
    stream.close()

    assert len(wire_server.requests) == 1
    assert clock.slept == 0
