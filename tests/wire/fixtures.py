"""The fixture `wire_server`, for any test folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.wire.server import WireServer


@pytest.fixture
def wire_server() -> Iterator[WireServer]:
    """A running server without scripts; `queue` them."""
    with WireServer() as server:
        yield server


@pytest.fixture
def claude_wire(wire_server: WireServer, monkeypatch: pytest.MonkeyPatch) -> WireServer:
    """The server, with an environment that sends the provider `claude` there: also that of kernels started now."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-api03-WiReTeStKeY0123456789abcdefghijkl")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", wire_server.url)
    return wire_server
