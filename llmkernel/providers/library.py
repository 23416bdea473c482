"""The offline provider: replies come from the kernels that ship with the package and the user's own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from llmkernel.errors import ProviderError
from llmkernel.library.entry import Entry
from llmkernel.library.matching import Match
from llmkernel.library.probe import Probe
from llmkernel.library.user import UserEntry
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

    def extra_entries(self) -> Sequence[UserEntry]:
        """Return the user's own accepted kernels."""
        from llmkernel.library.user import extra_entries

        return extra_entries()

    def matches(self, problem: Any) -> list[Match]:
        """Return every kernel that behaves as the problem's reference does, the best first."""
        from llmkernel.library.matching import find_matches, words_of

        probe, words = Probe(problem), words_of(problem)
        own = (entry.match(probe, words) for entry in self.extra_entries())
        found = [*(m for m in own if m is not None), *find_matches(probe, words, self.entries())]
        # Two entries may come to the same text: it is offered once.
        return list({m.source: m for m in sorted(found, key=lambda m: m.rank, reverse=True)}.values())[::-1]

    def stream(self, request: Request) -> Iterator[Event]:
        """Reply with the best match, or with the next best on a later attempt.

        Raises
        ------
        NoLibraryMatchError
            When no entry (or no further one) behaves as the reference does.
        """
        if request.problem is None:
            raise NoLibraryMatchError(
                "The library was asked without a problem.",
                rule="the offline library compares behaviour: it needs the reference, not the prompt",
                next_step="Use %%cuda_from or llmkernel.synthesize, or another --provider.",
            )
        yield Started("library")
        matches = self.matches(request.problem)
        earlier = sum(m.role == "assistant" for m in request.messages)
        if earlier >= len(matches):
            raise self._no_match(request.problem, matches)
        match = matches[earlier]
        text = _reply_text(match)
        for start in range(0, len(text), _CHUNK):
            yield TextDelta(text[start : start + _CHUNK])
        details = {"library_entry": match.name, "adaptations": list(match.adaptations)}
        yield Reply(text, "end", "library", details=details)

    def _no_match(self, problem: Any, matches: Sequence[Match]) -> NoLibraryMatchError:
        if matches:
            what = "Nothing else in the library computes this."
            looked_at = "tried: " + ", ".join(m.name for m in matches)
        else:
            what = "Nothing in the library computes this."
            count = len(self.entries()) + len(self.extra_entries())
            looked_at = f"{count} entries were compared by behaviour, none agrees"
        return NoLibraryMatchError(
            what,
            rule="an entry fits when its NumPy reference and yours agree on small random inputs",
            received=f"{problem.name}({Probe(problem).describe()}); {looked_at}",
            next_step="Set ANTHROPIC_API_KEY or OPENAI_API_KEY and name --provider claude or codex, use "
            "--provider openai-compatible with a server of your own, or write the kernel in a %%cuda cell.",
        )


def _reply_text(match: Match) -> str:
    lines = [f"From the library: {match.title} (`{match.name}`)."]
    if match.adaptations:
        lines.append("Adapted to your reference: " + "; ".join(match.adaptations) + ".")
    return "\n".join(lines) + f"\n\n```cuda\n{match.source.rstrip()}\n```\n"
