"""The look-up of a host, which cannot be interrupted once the system's resolver has begun it."""

from __future__ import annotations

import socket
import threading

import pytest

from llmkernel.providers import errors as e
from llmkernel.providers import network

from .support import REQUEST, FakeClock, make


@pytest.fixture
def mute(monkeypatch):
    """A resolver that does not answer before the test is over."""
    gate, asked = threading.Event(), []

    def look_up(host, *_, **__):
        asked.append(host)
        gate.wait(60)
        raise OSError("too late")

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    yield asked
    gate.set()


def test_a_resolver_that_is_silent_is_given_up(mute, wire_server, monkeypatch):
    provider = make(
        "claude",
        wire_server,
        monkeypatch,
        clock=FakeClock(),
        base_url="https://models.example",
        connect_timeout_s=0.01,
    )

    with pytest.raises(e.NetworkError) as caught:
        list(provider.stream(REQUEST))
    error = caught.value

    assert error.host == "models.example"
    assert "name resolution" in error.cause
    assert "Check the network connection" in error.next_step


def test_an_interrupt_arrives_while_it_is_waited_for(mute, monkeypatch):
    class Interrupted(network.queue.Queue):
        def get(self, *_, **__):
            raise KeyboardInterrupt

    monkeypatch.setattr(network.queue, "Queue", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        network.resolve("https://models.example", 60)


@pytest.mark.parametrize(
    ("url", "variables", "host"),
    [
        ("https://models.example/v1", {}, "models.example"),
        ("https://models.example/v1", {"HTTPS_PROXY": "http://me:x@proxy.example:3128"}, "proxy.example"),
        ("https://models.example/v1", {"ALL_PROXY": "proxy.example:3128"}, "proxy.example"),
        (
            "https://models.example/v1",
            {"HTTPS_PROXY": "http://proxy.example", "NO_PROXY": "models.example"},
            "models.example",
        ),
        ("http://127.0.0.1:11434/v1", {}, None),
        ("http://localhost:11434/v1", {}, None),
        ("http://[", {}, None),
        ("", {}, None),
    ],
)
def test_who_is_looked_up(url, variables, host, monkeypatch):
    asked = []
    monkeypatch.setattr(socket, "getaddrinfo", lambda name, *_, **__: asked.append(name) or [])
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    network.resolve(url, 10)

    assert asked == ([host] if host else [])
