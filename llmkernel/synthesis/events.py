"""What happens during synthesis, as data: the display is one listener, the log another."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from llmkernel.evaluation.report import CheckResult, Measurement, Report
from llmkernel.providers.base import Reply, Usage


@dataclass(frozen=True)
class Attempt:
    """One round.

    Attributes
    ----------
    number : int
        From 1.
    prompt : str
        The user message of this round (the system prompt is the same for all).
    reply : Reply or None
        None when the provider failed.
    source : str or None
        The candidate; None when the reply holds none.
    report : Report or None
    seconds : dict
        ``provider``, ``evaluation``.
    """

    number: int
    prompt: str
    reply: Reply | None = None
    source: str | None = None
    report: Report | None = None
    seconds: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class PromptBuilt:
    """A prompt is ready: `attempt` of at most `attempts`.

    Attributes
    ----------
    attempt, attempts : int
    provider : str
        Whom it is sent to, in words.
    tokens : int
    messages : tuple of (str, str)
        Role and text of every part, exactly as it is sent; the system prompt first. Empty where nothing is sent.
    """

    attempt: int
    attempts: int
    provider: str
    tokens: int
    messages: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class ThinkingSeen:
    """The model is reasoning."""

    text: str = ""


@dataclass(frozen=True)
class TextReceived:
    """A piece of the reply."""

    text: str


@dataclass(frozen=True)
class WaitingSeen:
    """The provider asked for patience."""

    seconds: float
    reason: str


@dataclass(frozen=True)
class StageStarted:
    """``compile``, ``quick``, ``full``, ``timing`` or ``replay`` begins; `detail` says on what."""

    stage: str
    detail: str = ""


@dataclass(frozen=True)
class CheckFinished:
    """One check is done."""

    result: CheckResult


@dataclass(frozen=True)
class SamplesTaken:
    """Samples arrived: the timing table so far, this kernel first. Nothing may be claimed of it yet."""

    rows: tuple[Measurement, ...]


@dataclass(frozen=True)
class AttemptFinished:
    """One round is over; its report says how."""

    attempt: Attempt


@dataclass(frozen=True)
class Accepted:
    """A candidate was accepted; `source` is ``generated``, ``replayed``, ``library`` or ``by hand``."""

    report: Report
    source: str
    usage: Usage = field(default_factory=Usage)
    cost_usd: float | None = None
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class GaveUp:
    """No candidate was accepted; `reason` says which limit ended it."""

    reason: str
    attempts: tuple[Attempt, ...] = ()


SynthesisEvent = (
    PromptBuilt
    | ThinkingSeen
    | TextReceived
    | WaitingSeen
    | StageStarted
    | CheckFinished
    | SamplesTaken
    | AttemptFinished
    | Accepted
    | GaveUp
)
