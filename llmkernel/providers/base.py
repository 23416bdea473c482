"""The contract of a provider: a request goes in, a stream of events comes out.

A provider is one class with `name`, `describe`, `is_configured` and `stream`. Third parties register theirs under the
entry-point group ``llmkernel.providers``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Literal

StopReason = Literal["end", "max_tokens", "refusal"]


@dataclass(frozen=True)
class Message:
    """One turn of the conversation; `role` is ``user`` or ``assistant``."""

    role: Literal["user", "assistant"]
    text: str


@dataclass(frozen=True)
class Request:
    """Everything that is sent, and the problem it is about.

    Attributes
    ----------
    system : str
        The stable part: identical over attempts and cells, so that a provider may cache it.
    messages : tuple of Message
        The last one is the user's.
    model : str or None
        None for the provider's configured default.
    effort : str or None
        Reasoning effort, in the provider's own words.
    max_tokens : int or None
        Limit of the reply, reasoning included.
    problem : object or None
        The `llmkernel.problem.problem.Problem`; only the offline `library` looks at it. Never sent.
    """

    system: str
    messages: tuple[Message, ...]
    model: str | None = None
    effort: str | None = None
    max_tokens: int | None = None
    problem: Any = None


@dataclass(frozen=True)
class Usage:
    """Tokens as the provider counted them; 0 where it does not say.

    Attributes
    ----------
    input_tokens : int
        All input, cached included.
    cached_tokens, cache_write_tokens : int
        Parts of `input_tokens` that were read from, or written to, the provider's cache.
    output_tokens : int
        All output, reasoning included.
    reasoning_tokens : int
    """

    input_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(*(a + b for a, b in zip(asdict(self).values(), asdict(other).values(), strict=True)))

    def to_dict(self) -> dict[str, int]:
        """Return JSON-able data."""
        return asdict(self)


@dataclass(frozen=True)
class Started:
    """The provider answered; `model` is the id that it reports."""

    model: str


@dataclass(frozen=True)
class Thinking:
    """The model is reasoning; `text` is a summary where one is given."""

    text: str = ""


@dataclass(frozen=True)
class TextDelta:
    """A piece of the reply."""

    text: str


@dataclass(frozen=True)
class Waiting:
    """The provider asked for patience: `seconds` from now the request is sent again."""

    seconds: float
    reason: str


@dataclass(frozen=True)
class Reply:
    """A whole reply; the last event of every stream that did not raise.

    Attributes
    ----------
    text : str
    stop_reason : str
        ``end``, ``max_tokens`` (truncated: never compile it) or ``refusal``.
    model : str
        The id that the provider reports.
    usage : Usage
    request_id : str
        For the provider's support; empty when unknown.
    cost_usd : float or None
        Only where a price is known.
    details : dict
        JSON-able extras: refusal category, library entry…
    """

    text: str
    stop_reason: StopReason
    model: str
    usage: Usage = field(default_factory=Usage)
    request_id: str = ""
    cost_usd: float | None = None
    details: dict[str, Any] = field(default_factory=dict)


Event = Started | Thinking | TextDelta | Waiting | Reply


class Provider(ABC):
    """Turns a request into a reply."""

    name: ClassVar[str]
    is_offline: ClassVar[bool] = False

    @classmethod
    @abstractmethod
    def is_configured(cls) -> bool:
        """Return whether a key (or what this provider needs) is present; builds no client."""

    @abstractmethod
    def describe(self, request: Request) -> str:
        """Return ``provider · model · effort`` as it would be used for `request`."""

    @abstractmethod
    def count_tokens(self, request: Request) -> int:
        """Return an estimate of the input tokens of `request` without sending it."""

    def estimate_usd(self, request: Request) -> float | None:  # noqa: ARG002 - for those that know prices
        """Return about what the input of `request` costs, uncached; None where the price is not known."""
        return None

    @abstractmethod
    def stream(self, request: Request) -> Iterator[Event]:
        """Send `request` and yield events; the last one is a `Reply`.

        Raises
        ------
        llmkernel.errors.ProviderError
            One subclass for each kind of failure (`llmkernel.providers.errors`). KeyboardInterrupt passes through
            and closes the connection.
        """
