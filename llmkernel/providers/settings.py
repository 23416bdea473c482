"""What a provider is configured with, apart from its key."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any


@dataclass(frozen=True)
class ProviderSettings:
    """Settings of one provider; None leaves a value to the provider's default.

    Attributes
    ----------
    model, effort : str or None
    max_tokens : int or None
        Limit of a reply, reasoning included.
    base_url : str or None
        Overrides the provider's address and the environment variable that holds it.
    connect_timeout_s, read_timeout_s : float
        Longest wait for a connection, and for the next piece of a reply.
    max_retries : int
        How often a request is sent again after a rate limit, an overload or a failure of the server.
    max_wait_s : float
        Longest single wait that the provider may ask for; a longer one raises `RateLimitError`.
    """

    model: str | None = None
    effort: str | None = None
    max_tokens: int | None = None
    base_url: str | None = field(default=None, repr=False)  # it may hold credentials
    connect_timeout_s: float = 10.0
    read_timeout_s: float = 300.0
    max_retries: int = 4
    max_wait_s: float = 120.0

    @classmethod
    def from_config(cls, config: Any) -> ProviderSettings:
        """Take every field that `config` (any object, or None) has a value for."""
        if config is None:
            return cls()
        if isinstance(config, cls):
            return config
        values = {f.name: getattr(config, f.name, None) for f in fields(cls)}
        return replace(cls(), **{name: value for name, value in values.items() if value not in (None, "")})
