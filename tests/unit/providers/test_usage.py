from __future__ import annotations

import contextlib

import pytest

from llmkernel.display.usage import usage_bundle
from llmkernel.providers.base import Message, Provider, Reply, Request, Started, TextDelta, Usage
from llmkernel.providers.claude import ClaudeProvider
from llmkernel.providers.errors import BudgetReachedError
from llmkernel.providers.usage import UsageEntry, UsageLedger, stream_counted
from tests.wire.scripts import CUT, Script, reply

REQUEST = Request("system", (Message("user", "why?"),), model="claude-opus-5-5")


def drain(ledger, request=REQUEST, **options):
    return list(stream_counted(ClaudeProvider(), request, purpose="f_cuda", ledger=ledger, **options))


@pytest.fixture
def ledger():
    return UsageLedger(locate=lambda: "[7]")


def test_a_reply_is_entered_with_its_price(claude_wire, ledger):
    claude_wire.queue(reply("So."))
    events = drain(ledger)

    (entry,) = ledger.entries
    assert (entry.cell, entry.purpose, entry.provider, entry.model) == (
        "[7]",
        "f_cuda",
        "claude",
        "claude-opus-5-5",
    )
    assert isinstance(events[-1], Reply)
    assert entry.usage == events[-1].usage
    assert entry.cost_usd == events[-1].cost_usd == ledger.spent_usd > 0


def test_a_reply_that_breaks_off_is_entered_too(claude_wire, ledger):
    claude_wire.queue(Script(text="one half", broken=CUT, break_after=3))
    with pytest.raises(Exception, match=r"broke|ended|cut"):
        drain(ledger)

    assert [e.is_whole for e in ledger.entries] == [False]


def test_closing_it_closes_the_connection(claude_wire, ledger):
    claude_wire.queue(Script(text="one half " * 50, broken="silence", break_after=60))
    with contextlib.closing(stream_counted(ClaudeProvider(), REQUEST, purpose="x", ledger=ledger)) as events:
        next(e for e in events if isinstance(e, TextDelta))

    assert claude_wire.hung_up.wait(10)
    assert [e.is_whole for e in ledger.entries] == [False]


def test_what_was_never_answered_is_not_entered(claude_wire, ledger, monkeypatch):
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    with pytest.raises(Exception, match="No key"):
        drain(ledger)

    assert not ledger.entries


class Canned(Provider):
    name = "canned"

    def __init__(self, is_offline=False, cost=None, estimate=None):
        self.is_offline, self.cost, self.estimate = is_offline, cost, estimate
        self.asked = 0

    @classmethod
    def is_configured(cls):
        return True

    def describe(self, request):
        return self.name

    def count_tokens(self, request):
        return 0

    def estimate_usd(self, request):
        return self.estimate

    def stream(self, request):
        self.asked += 1
        yield Started("m")
        yield Reply("x", "end", "m", Usage(10, 5, 0, 20), cost_usd=self.cost)


@pytest.mark.parametrize(
    ("spent", "estimate", "goes"),
    [
        (0.0, None, True),
        (0.9, 0.05, True),
        (0.9, 0.2, False),
        (1.0, 0.0, False),
        (1.0, None, False),
        (2.0, None, False),
    ],
)
def test_the_budget_is_checked_before_a_request(ledger, spent, estimate, goes):
    ledger.entries.append(UsageEntry("", "x", "canned", "m", cost_usd=spent))
    provider = Canned(cost=5.0, estimate=estimate)
    counted = stream_counted(provider, REQUEST, purpose="x", budget_usd=1.0, ledger=ledger)
    if goes:
        assert list(counted)
    else:
        with pytest.raises(BudgetReachedError, match=r"budget of \$1"):
            list(counted)
    assert provider.asked == int(goes)


def test_offline_costs_nothing_and_is_never_stopped(ledger):
    ledger.entries.append(UsageEntry("", "x", "canned", "m", cost_usd=2.0))
    assert list(stream_counted(Canned(is_offline=True), REQUEST, purpose="x", budget_usd=1.0, ledger=ledger))
    assert len(ledger.entries) == 1


def test_the_estimate_of_a_request_is_the_price_of_its_input(claude_wire):
    provider = ClaudeProvider()
    long = Request("s" * 350_000, REQUEST.messages, model="claude-opus-5-5")

    assert provider.estimate_usd(long) == pytest.approx(100_000 * 4 / 1e6, rel=0.01)
    assert provider.estimate_usd(Request("s", REQUEST.messages, model="unknown")) is None


def entry(cell, cost, **changes):
    return UsageEntry(cell, "f_cuda", "claude", "opus", Usage(1000, 400, 0, 50), cost, **changes)


def test_the_table_has_a_line_for_each_cell_and_their_sum(ledger):
    ledger.entries += [entry("[1]", 0.25), entry("[1]", 0.5), entry("[2]", 0.25)]
    bundle = usage_bundle(ledger, budget_usd=3.0)

    lines = bundle["text/plain"].splitlines()
    assert [line.split()[0] for line in lines[2:5]] == ["[1]", "[2]", "all"]
    assert "0.7500 USD" in lines[2]
    assert "1.00 USD" in lines[4]
    assert "3\u202f000" in lines[4]
    assert "Budget: 1.00 USD of 3.00 USD." in lines
    assert "<table" in bundle["text/html"]
    assert "| \\[1\\] |" in bundle["text/markdown"]


def test_what_is_not_known_is_said(ledger):
    ledger.entries += [entry("[1]", 0.25), entry("[2]", None), entry("[3]", None, is_whole=False)]
    shown = usage_bundle(ledger)["text/plain"]

    assert "not known" in shown
    assert "1 request without a known price" in shown
    assert "1 answer broke off; what it took" in shown
    assert "Known so far: 0.2500 USD." in shown


def test_nothing_was_asked_yet(ledger):
    ledger.entries.append(entry("[1]", 1.0))
    ledger.reset()

    assert usage_bundle(ledger)["text/plain"] == "Nothing was asked of a provider yet."
