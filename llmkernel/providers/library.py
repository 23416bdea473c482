"""The offline provider: replies come from the kernels that ship with the package and the user's own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from llmkernel.errors import ProviderError
from llmkernel.library.entry import Entry
from llmkernel.library.matching import Match
from llmkernel.library.probe import Probe
from llmkernel.providers.base import Event, Provider, Reply, Request, Started, TextDelta

_CHUNK = 400


class NoLibraryMatchError(ProviderError):
    """Nothing in the library computes what the reference computes."""


class LibraryProvider(Provider):
    """Chooses a kernel by what the reference does on small inputs. It sends nothing anywhere.

    The kernel it replies with is a candidate like any other: the loop compiles, verifies and times it.
    """

    name: ClassVar[str] = "library"
    is_offline: ClassVar[bool] = True

    @classmethod
    def is_configured(cls) -> bool:
        """Return True: the library is always there."""
        return True

    def describe(self, request: Request) -> str:  # noqa: ARG002 - the contract's signature
        """Return ``library · offline``."""
        return "library · offline"

    def count_tokens(self, request: Request) -> int:  # noqa: ARG002 - the contract's signature
        """Return 0: nothing is sent."""
        return 0

    def entries(self) -> Sequence[Entry]:
        """Return the kernels that ship with the package."""
        from llmkernel.library.catalogue import shipped_entries

        return shipped_entries()

    def stream(self, request: Request) -> Iterator[Event]:
        """Reply with the best match, or with the next best on a later attempt.

        Raises
        ------
        NoLibraryMatchError
            When no entry (or no further one) behaves as the reference does.
        """
        from llmkernel.library.matching import find_matches, words_of

        if request.problem is None:
            raise NoLibraryMatchError(
                "The library was asked without a problem.",
                rule="the offline library compares behaviour: it needs the reference, not the prompt",
                next_step="Use %%cuda_from or llmkernel.synthesize, or another --provider.",
            )
        yield Started("library")
        probe = Probe(request.problem)
        matches = find_matches(probe, words_of(request.problem), self.entries())
        earlier = sum(m.role == "assistant" for m in request.messages)
        if earlier >= len(matches):
            raise self._no_match(probe, matches)
        match = matches[earlier]
        text = _reply_text(match)
        for start in range(0, len(text), _CHUNK):
            yield TextDelta(text[start : start + _CHUNK])
        details = {"library_entry": match.name, "adaptations": list(match.adaptations)}
        yield Reply(text, "end", "library", details=details)

    def _no_match(self, probe: Probe, matches: Sequence[Match]) -> NoLibraryMatchError:
        tried = ", ".join(m.name for m in matches)
        return NoLibraryMatchError(
            "Nothing else in the library computes this."
            if matches
            else "Nothing in the library computes this.",
            rule="an entry fits when its NumPy reference and yours agree on small random inputs",
            received=f"{probe.problem.name}({probe.describe()}); "
            + (
                f"tried: {tried}"
                if tried
                else f"{len(self.entries())} entries were compared by behaviour, none agrees"
            ),
            next_step="Set ANTHROPIC_API_KEY or OPENAI_API_KEY and name --provider claude or codex, use "
            "--provider openai-compatible with a server of your own, or write the kernel in a %%cuda cell.",
        )


def _reply_text(match: Match) -> str:
    lines = [f"From the library: {match.title} (`{match.name}`)."]
    if match.adaptations:
        lines.append("Adapted to your reference: " + "; ".join(match.adaptations) + ".")
    return "\n".join(lines) + f"\n\n```cuda\n{match.source.rstrip()}\n```\n"
