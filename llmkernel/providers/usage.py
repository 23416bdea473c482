"""What was asked of providers in this process, and what it cost: one ledger for `synthesize` and the magics."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field

from llmkernel.providers.base import Event, Provider, Reply, Request, Started, Usage


@dataclass(frozen=True)
class UsageEntry:
    """One request that a provider answered.

    Attributes
    ----------
    cell : str
        Where it was sent from, such as ``[5]``; empty outside of a notebook.
    purpose : str
        What it was for: a kernel's name, or ``%ask``.
    provider, model : str
    usage : Usage
    cost_usd : float or None
        None where a price is not known.
    is_whole : bool
        False where the reply did not come to its end: what it cost, only the provider knows.
    """

    cell: str
    purpose: str
    provider: str
    model: str
    usage: Usage = field(default_factory=Usage)
    cost_usd: float | None = None
    is_whole: bool = True

    def __add__(self, other: UsageEntry) -> UsageEntry:
        """Return both as one, with this one's names; its cost is known where both are."""
        known = self.cost_usd is not None and other.cost_usd is not None
        return UsageEntry(
            self.cell,
            self.purpose,
            self.provider,
            self.model,
            self.usage + other.usage,
            (self.cost_usd or 0.0) + (other.cost_usd or 0.0) if known else None,
            self.is_whole and other.is_whole,
        )


def running_cell() -> str:
    """Return the number of the cell that runs now, as ``[5]``; empty outside of IPython, which is not imported for it."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None:
        return ""
    # The last one is the cell itself; `execution_count` is raised before or after it, by the version of IPython.
    return f"[{len(shell.history_manager.input_hist_raw) - 1}]"


class UsageLedger:
    """The requests of one process, in order.

    Attributes
    ----------
    entries : list of UsageEntry
    locate : callable
        Names the cell that runs now.
    """

    def __init__(self, locate: Callable[[], str] | None = None) -> None:
        self.entries: list[UsageEntry] = []
        self.locate = locate or running_cell

    @property
    def spent_usd(self) -> float:
        """What the requests with a known price cost together: a lower bound where some have none."""
        return sum(e.cost_usd for e in self.entries if e.cost_usd is not None)

    def by_cell(self) -> list[tuple[UsageEntry, int]]:
        """Return one sum, with its number of requests, for each cell, purpose and model, in order."""
        groups: dict[tuple[str, str, str, str], list[UsageEntry]] = {}
        for e in self.entries:
            groups.setdefault((e.cell, e.purpose, e.provider, e.model), []).append(e)
        return [(sum(group[1:], group[0]), len(group)) for group in groups.values()]

    def total(self) -> UsageEntry | None:
        """Return the sum of all entries; None where there is none."""
        return sum(self.entries[1:], self.entries[0]) if self.entries else None

    def reset(self) -> None:
        """Forget all entries."""
        self.entries.clear()

    def check_budget(self, provider: Provider, request: Request, budget_usd: float | None) -> None:
        """Refuse a request that the budget has no room for; nothing was sent then.

        What `request` will cost at least is estimated from its input. Requests without a known price count
        nothing.

        Raises
        ------
        llmkernel.providers.errors.BudgetReachedError
        """
        if budget_usd is None or provider.is_offline:
            return
        spent, least = self.spent_usd, provider.estimate_usd(request) or 0.0
        if spent < budget_usd and spent + least <= budget_usd:
            return
        # Here, not above: a kernel that starts needs the ledger and none of the errors.
        from llmkernel.providers.errors import BudgetReachedError

        raise BudgetReachedError(
            f"The notebook's budget of ${budget_usd:.4g} is reached; the request was not sent.",
            rule="notebook_budget_usd is checked before a request, never after",
            received=f"${spent:.4g} spent so far, about ${least:.4g} more for the prompt alone",
            next_step="%llm_usage shows what it went to. Raise it by %config LLMKernel.notebook_budget_usd = …, "
            "or count anew: %llm_usage --reset",
        )


# One process runs one notebook.
LEDGER = UsageLedger()


def stream_counted(
    provider: Provider,
    request: Request,
    *,
    purpose: str,
    budget_usd: float | None = None,
    ledger: UsageLedger = LEDGER,
) -> Iterator[Event]:
    """Yield what `provider.stream` yields, and enter its usage into `ledger`.

    Closing it closes the provider's stream. A request that was answered and then broke off is entered too.

    Parameters
    ----------
    provider : Provider
    request : Request
    purpose : str
        As in `UsageEntry`.
    budget_usd : float, optional
        Limit of the whole ledger, checked before the request.
    ledger : UsageLedger

    Raises
    ------
    llmkernel.providers.errors.BudgetReachedError
        Before anything is sent.
    """
    ledger.check_budget(provider, request, budget_usd)
    cell, model, is_whole = ledger.locate(), "", False
    try:
        with closing(provider.stream(request)) as events:  # type: ignore[type-var]
            for event in events:
                if isinstance(event, Started):
                    model = event.model
                elif isinstance(event, Reply) and not provider.is_offline:
                    is_whole = True
                    entry = UsageEntry(cell, purpose, provider.name, event.model, event.usage, event.cost_usd)
                    ledger.entries.append(entry)
                yield event
    finally:
        if model and not is_whole and not provider.is_offline:
            ledger.entries.append(UsageEntry(cell, purpose, provider.name, model, is_whole=False))
