"""A provider that answers from a list; the real ones are tested over the wire."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from llmkernel.providers.base import Event, Provider, Reply, Request, Started, TextDelta, Usage


class ScriptedProvider(Provider):
    """Yields the given replies in order; an exception in the list is raised."""

    name = "scripted"

    def __init__(self, replies: Sequence[Reply | Exception]) -> None:
        self.replies = list(replies)
        self.requests: list[Request] = []
        self.closed = 0

    @classmethod
    def is_configured(cls) -> bool:
        return True

    def describe(self, request: Request) -> str:
        return "scripted"

    def count_tokens(self, request: Request) -> int:
        return 1

    def stream(self, request: Request) -> Iterator[Event]:
        self.requests.append(request)
        reply = self.replies.pop(0)
        try:
            if isinstance(reply, Exception):
                raise reply
            yield Started("model-1")
            yield TextDelta(reply.text)
            yield reply
        finally:
            self.closed += 1


def reply(source: str, *, stop: str = "end", cost: float | None = 0.5) -> Reply:
    text = f"```cuda\n{source}```\n"
    return Reply(text, stop, "model-1", Usage(input_tokens=10, output_tokens=5), cost_usd=cost)  # type: ignore[arg-type]
