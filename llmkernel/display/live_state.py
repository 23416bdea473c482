"""What is known while a synthesis runs: events go in, nothing is shown from here."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from llmkernel.display import figures, view
from llmkernel.display.attempts import attempt_verdict
from llmkernel.display.clean import clean, one_line
from llmkernel.evaluation.report import CheckResult, Measurement
from llmkernel.synthesis.events import (
    Accepted,
    Attempt,
    AttemptFinished,
    CheckFinished,
    GaveUp,
    PromptBuilt,
    SamplesTaken,
    StageStarted,
    SynthesisEvent,
    TextReceived,
    ThinkingSeen,
    WaitingSeen,
)

TAIL_LINES = 30
FINISHED = "finished"
_LINE = 200
_STAGES = {
    "quick": "quick check",
    "full": "full verification",
    "timing": "timing",
    "replay": "replay",
    "memory": "memory checks",
}


@dataclass
class Stage:
    """One step of the current attempt; `ended` is None while it runs."""

    name: str
    detail: str
    started: float
    ended: float | None = None

    def seconds(self, now: float) -> float:
        """Return how long it took, or has been running."""
        return max((self.ended if self.ended is not None else now) - self.started, 0.0)


@dataclass
class Tail:
    """The last lines of a streamed reply, whatever its length."""

    lines: deque[tuple[str, bool]] = field(default_factory=lambda: deque(maxlen=TAIL_LINES))
    partial: str = ""
    is_code: bool = False
    characters: int = 0

    def add(self, text: str) -> None:
        """Take the next piece."""
        self.characters += len(text)
        *whole, rest = (self.partial + text).split("\n")
        for line in whole:
            is_fence = line.lstrip().startswith(("```", "~~~"))
            self.lines.append((clean(line[:_LINE]), self.is_code and not is_fence))
            if is_fence:
                self.is_code = not self.is_code
        # Only the end of an endless line is kept, as for an endless reply.
        self.partial = rest[-4 * _LINE :]

    def segments(self) -> list[tuple[str, bool]]:
        """Return runs of lines, each with whether it is code."""
        rows = (
            [*self.lines, (clean(self.partial[-_LINE:]), self.is_code)] if self.partial else list(self.lines)
        )
        runs: list[tuple[str, bool]] = []
        for line, is_code in rows[-TAIL_LINES:]:
            if runs and runs[-1][1] == is_code:
                runs[-1] = (f"{runs[-1][0]}\n{line}", is_code)
            else:
                runs.append((line, is_code))
        return runs


@dataclass(frozen=True)
class Prompt:
    """What one attempt sent: role and text of each part."""

    attempt: int
    tokens: int
    messages: tuple[tuple[str, str], ...]


@dataclass
class LiveState:
    """Everything that the live output shows; `name` is cleaned."""

    started: float
    name: str = "kernel"
    attempt: int = 0
    attempts: int = 0
    provider: str = ""
    stages: list[Stage] = field(default_factory=list)
    checks: list[CheckResult] = field(default_factory=list)
    finished: list[Attempt] = field(default_factory=list)
    tail: Tail = field(default_factory=Tail)
    thinking: str = ""
    samples: tuple[Measurement, ...] = ()
    waiting_until: float | None = None
    waiting_reason: str = ""
    prompts: list[Prompt] = field(default_factory=list)
    is_stopping: bool = False
    closing: str = ""

    def __post_init__(self) -> None:
        self.name = one_line(self.name, 80) or "kernel"

    def apply(self, event: SynthesisEvent, now: float) -> str:
        """Take an event; return a line for a terminal where it begins or ends something, else nothing."""
        if not isinstance(event, WaitingSeen):
            self.waiting_until = None
        match event:
            case PromptBuilt():
                return self._begin_attempt(event, now)
            case ThinkingSeen():
                self.thinking = (self.thinking + clean(event.text))[-600:]
                return self._enter("thinking", "", now)
            case TextReceived():
                self.tail.add(event.text)
                return self._enter("reply", "", now)
            case WaitingSeen():
                self.waiting_until, self.waiting_reason = now + event.seconds, one_line(event.reason, 200)
                return f"waiting {figures.seconds(event.seconds)}: {self.waiting_reason}"
            case StageStarted():
                return self._enter(
                    _STAGES.get(event.stage, one_line(event.stage, 40)), one_line(event.detail, 120), now
                )
            case CheckFinished():
                self.checks.append(event.result)
                symbol, word, _ = view.STATUSES[event.result.status]
                is_bad = event.result.status == "failed"
                summary = one_line(event.result.summary, 300)
                return f"{symbol} {one_line(event.result.name, 60)} {word}: {summary}" if is_bad else ""
            case SamplesTaken():
                self.samples = event.rows
                return ""
            case AttemptFinished():
                self._end_stage(now)
                self.finished.append(event.attempt)
                return attempt_line(event.attempt)
            case Accepted():
                self._end_stage(now)
                return f"accepted ({one_line(event.source, 40)})"
            case GaveUp():
                self._end_stage(now)
                self.closing = f"gave up: {one_line(event.reason, 300).rstrip('.').replace('`', '')}"
                return self.closing

    def _begin_attempt(self, event: PromptBuilt, now: float) -> str:
        self.attempt, self.attempts, self.provider = (
            event.attempt,
            event.attempts,
            one_line(event.provider, 120),
        )
        self.stages, self.checks, self.tail, self.thinking, self.samples = [], [], Tail(), "", ()
        if event.messages:
            self.prompts.append(Prompt(event.attempt, event.tokens, event.messages))
        detail = f"{figures.grouped(event.tokens)} tokens" if event.tokens else ""
        self._enter("asking", detail, now)
        asked = f"asking {self.provider}" + (f" ({detail})" if detail else "")
        return f"attempt {event.attempt} of {event.attempts}: {asked}"

    def _enter(self, name: str, detail: str, now: float) -> str:
        """Start a stage unless it runs already; return its line for a terminal."""
        if self.stages and self.stages[-1].name == name and self.stages[-1].ended is None:
            return ""
        self._end_stage(now)
        self.stages.append(Stage(name, detail, now))
        return f"{name}: {detail}" if detail else f"{name}…"

    def _end_stage(self, now: float) -> None:
        if self.stages and self.stages[-1].ended is None:
            self.stages[-1].ended = now


def attempt_line(attempt: Attempt) -> str:
    """Return ``attempt 1 ✗ wrong value: …``."""
    headline = f": {one_line(attempt.report.headline, 300)}" if attempt.report else ""
    return f"attempt {attempt.number} {attempt_verdict(attempt)}{headline}"
