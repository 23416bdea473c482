"""Providers pointed at the local server, with a clock that does not wait."""

from __future__ import annotations

from llmkernel.providers.base import Message, Reply, Request
from llmkernel.providers.claude import ClaudeProvider
from llmkernel.providers.codex import CodexProvider
from llmkernel.providers.openai_compatible import OpenAICompatibleProvider
from llmkernel.providers.retry import Clock
from llmkernel.providers.settings import ProviderSettings

PROVIDERS = ("claude", "codex", "openai-compatible")
CLASSES = {"claude": ClaudeProvider, "codex": CodexProvider, "openai-compatible": OpenAICompatibleProvider}
KEYS = {
    "claude": "sk-ant-api03-WiReTeStKeY0123456789abcdefghijkl",
    "codex": "sk-proj-WiReTeStKeY0123456789abcdefghijkl",
    "openai-compatible": "wire-compatible-key-0123456789",
}
KEY_VARIABLES = {
    "claude": "ANTHROPIC_API_KEY",
    "codex": "OPENAI_API_KEY",
    "openai-compatible": "LLMKERNEL_OPENAI_API_KEY",
}
REQUEST = Request("You write CUDA.", (Message("user", "softmax, please"),))


class FakeClock:
    """Time that passes only when someone sleeps."""

    def __init__(self) -> None:
        self.time = 1_790_000_000.0
        self.slept = 0.0

    def clock(self) -> Clock:
        return Clock(now=lambda: self.time, sleep=self._sleep, jitter=lambda: 1.0)

    def _sleep(self, seconds: float) -> None:
        self.time += seconds
        self.slept += seconds


def make(name, server, monkeypatch, *, clock=None, base_url=None, **settings):
    """Return the provider `name` with a key, talking to `server`."""
    monkeypatch.setenv(KEY_VARIABLES[name], KEYS[name])
    url = base_url or (server.url if name == "claude" else server.openai_url)
    settings = {"model": "wire-model", "base_url": url, "read_timeout_s": 10.0, **settings}
    return CLASSES[name](ProviderSettings(**settings), clock=(clock or FakeClock()).clock())


def last(events) -> Reply:
    """Return the reply at the end of `events`."""
    *_, reply = events
    assert isinstance(reply, Reply)
    return reply
