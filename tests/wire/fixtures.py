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
