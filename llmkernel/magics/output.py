"""The output of a magic's cell: what happens is shown while it happens, and becomes one report at the end."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

from llmkernel.synthesis.events import Accepted, Attempt, AttemptFinished, PromptBuilt, SynthesisEvent


class CellOutput:
    """Listener of one synthesis.

    Parameters
    ----------
    name : str
        Name of the kernel that is being made.
    quiet : bool
        Show the report only.
    live : str
        How the way there is shown: see `llmkernel.display.front_end.live_mode`.
    """

    def __init__(self, name: str, *, quiet: bool, live: str = "auto") -> None:
        from llmkernel.display.live import LiveOutput

        self._name = name
        self._live = LiveOutput(name, quiet=quiet, live=live)
        self._attempts: list[Attempt] = []
        self._provider = ""
        self._accepted: Accepted | None = None

    def __call__(self, event: SynthesisEvent) -> None:
        """Take one event."""
        if isinstance(event, PromptBuilt):
            self._provider = event.provider
        elif isinstance(event, AttemptFinished):
            self._attempts.append(event.attempt)
        elif isinstance(event, Accepted):
            self._accepted = event
        self._live(event)

    def finish(self, kernel: Any) -> None:
        """Leave the report of `kernel`, with its record, so that the notebook alone is enough to share it.

        Parameters
        ----------
        kernel : llmkernel.synthesis.generated_kernel.GeneratedKernel or \
                llmkernel.synthesis.unverified_kernel.UnverifiedKernel
        """
        from llmkernel.display.bundle import report_bundle

        accepted, record = self._accepted, kernel.record
        replies = [a.reply for a in self._attempts if a.reply is not None]
        # A replayed kernel has no attempts; its record says who wrote it.
        provider = record.provider if record is not None else self._provider
        model = record.model if record is not None else replies[-1].model if replies else ""
        model = "" if model == provider else model  # the offline library is its own model
        self._live.finish(
            report_bundle(
                kernel.report,
                source=kernel.source,
                attempts=self._attempts,
                record=record.to_output(kernel.source) if record is not None else None,
                # Nothing is accepted without a reference; who has none wrote it by hand.
                origin=accepted.source if accepted else "by hand",
                provider=provider,
                model=model,
                usage=accepted.usage if accepted else None,
                cost_usd=accepted.cost_usd if accepted else None,
            )
        )

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        from llmkernel.display.interrupts import uninterrupted

        # On an error, and on an interrupt too, what was found so far stays on the screen.
        with uninterrupted():
            self._live.__exit__(kind, error, trace)
        if isinstance(error, KeyboardInterrupt):
            # Where exactly it struck, in whose frames, tells nobody anything.
            told = f"KeyboardInterrupt: the cell was stopped; {self._name} is as it was before."
            vars(error)["_render_traceback_"] = lambda: [told]
