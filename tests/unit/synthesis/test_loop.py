import pytest

from llmkernel.errors import NotAcceptedError
from llmkernel.evaluation.worker.client import POOL
from llmkernel.problem.problem import make_problem
from llmkernel.problem.reference import make_reference
from llmkernel.providers.errors import BudgetReachedError, OverloadedError, RefusedError
from llmkernel.synthesis.events import (
    AttemptFinished,
    GaveUp,
    PromptBuilt,
    SamplesTaken,
    TextReceived,
    WaitingSeen,
)
from llmkernel.synthesis.loop import Loop, LoopOptions
from tests.unit.evaluation.kernels import AXPY, axpy, axpy_inputs
from tests.unit.synthesis.scripted import ScriptedProvider, reply

WRONG = AXPY.replace("+ y[i]", "- y[i]")
OTHER_WRONG = AXPY.replace("+ y[i]", "+ 2.0f * y[i]")


def run(replies, kind=ScriptedProvider, **options):
    problem = make_problem(*make_reference(axpy, axpy_inputs()), intent="a times x plus y")
    provider = kind(replies)
    events = []
    loop = Loop(problem, provider, "cpu", POOL.get("cpu").limits(), LoopOptions(**options), events.append)
    try:
        return loop.run(), provider, events
    except Exception as error:
        return error, provider, events


def test_the_first_candidate_that_passes_is_accepted():
    result, provider, events = run([reply(AXPY), reply(WRONG)])
    assert result.accepted.number == 1
    assert len(provider.requests) == 1
    assert any(isinstance(e, TextReceived) for e in events)
    assert any(isinstance(e, SamplesTaken) for e in events)


def test_a_listener_is_told_exactly_what_is_sent():
    _, provider, events = run([reply(WRONG), reply(AXPY)])
    told = [e.messages for e in events if isinstance(e, PromptBuilt)]

    assert told == [
        (("system", r.system), *((m.role, m.text) for m in r.messages)) for r in provider.requests
    ]


def test_a_listener_is_not_told_of_something_sent_where_nothing_is(monkeypatch):
    monkeypatch.setattr(ScriptedProvider, "is_offline", True)
    _, _, events = run([reply(AXPY)])

    assert [e.messages for e in events if isinstance(e, PromptBuilt)] == [()]


def test_failures_are_fed_back_and_every_attempt_is_kept():
    result, provider, events = run([reply(WRONG), reply(AXPY.replace(";", "", 1)), reply(AXPY)])
    assert [a.report.outcome for a in result.attempts] == ["wrong_value", "not_compiled", "passed"]
    assert "expected" in provider.requests[1].messages[-1].text
    assert "error" in provider.requests[2].messages[-1].text
    assert sum(isinstance(e, AttemptFinished) for e in events) == 3
    assert result.usage.output_tokens == 15
    assert result.cost_usd == 1.5


def test_the_limit_of_attempts_ends_it_with_all_attempts():
    error, provider, events = run([reply(WRONG), reply(OTHER_WRONG), reply(AXPY)], attempts=2)
    assert isinstance(error, NotAcceptedError)
    assert len(error.attempts) == len(provider.requests) == 2
    assert "limit of 2 attempts" in str(error)
    assert any(isinstance(e, GaveUp) for e in events)


def test_the_same_candidate_again_ends_it():
    error, provider, _ = run([reply(WRONG), reply(WRONG), reply(AXPY)])
    assert isinstance(error, NotAcceptedError)
    assert len(provider.requests) == 2
    assert "same candidate" in str(error)


def test_a_truncated_reply_is_asked_for_again_with_a_larger_limit_and_never_compiled():
    result, provider, events = run([reply(AXPY[:-30], stop="max_tokens"), reply(AXPY)], max_tokens=1000)
    assert result.accepted.number == 1
    assert [r.max_tokens for r in provider.requests] == [1000, 2000]
    assert provider.requests[0].messages == provider.requests[1].messages
    assert any(isinstance(e, WaitingSeen) for e in events)


def test_a_reply_that_stays_truncated_is_rejected_not_compiled():
    error, provider, _ = run([reply(AXPY, stop="max_tokens")] * 2, attempts=1)
    assert isinstance(error, NotAcceptedError)
    assert error.attempts[0].source is None
    assert error.attempts[0].report.outcome == "rejected"
    assert len(provider.requests) == 2


def test_a_refusal_is_not_repeated():
    error, provider, _ = run([reply("", stop="refusal"), reply(AXPY)])
    assert isinstance(error, RefusedError)
    assert len(provider.requests) == 1


def test_a_reply_without_a_kernel_is_rejected_and_asked_again():
    from llmkernel.providers.base import Reply

    result, _, _ = run([Reply("I would rather talk.", "end", "model-1"), reply(AXPY)])
    assert [a.report.outcome for a in result.attempts] == ["rejected", "passed"]


def test_a_failing_provider_raises_its_own_error():
    error, _, events = run([reply(WRONG), OverloadedError("busy")])
    assert isinstance(error, OverloadedError)
    gave_up = next(e for e in events if isinstance(e, GaveUp))
    assert len(gave_up.attempts) == 1


def test_the_budget_is_checked_before_a_request():
    error, provider, _ = run([reply(WRONG), reply(AXPY)], budget_usd=0.5)
    assert isinstance(error, NotAcceptedError)
    assert len(provider.requests) == 1
    assert "budget" in str(error)


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        ({"attempts": 1}, "--attempts"),
        ({"budget_usd": 0.5}, "budget_usd"),
        ({"total_seconds": 1e-9}, "--timeout"),
    ],
)
def test_the_next_step_is_about_the_limit_that_ended_it(options, advice):
    error, _, _ = run([reply(WRONG), reply(OTHER_WRONG)], **options)
    assert isinstance(error, NotAcceptedError)
    assert advice in error.next_step


def test_no_attempt_at_all_is_said_so():
    error, provider, _ = run([reply(AXPY)], total_seconds=1e-9)
    assert str(error).startswith("No kernel for axpy: no attempts.")
    assert provider.requests == []


def test_the_budget_of_tokens_is_checked_before_a_request():
    error, provider, _ = run([reply(WRONG), reply(AXPY)], token_budget=15)
    assert isinstance(error, NotAcceptedError)
    assert len(provider.requests) == 1
    assert "15 tokens" in str(error)


def test_an_unknown_price_makes_the_sum_unknown():
    result, _, _ = run([reply(WRONG, cost=None), reply(AXPY)])
    assert result.cost_usd is None


def test_a_target_that_no_emulated_timing_can_reach_keeps_what_passed():
    slower = AXPY.replace("128", "64")
    result, provider, _ = run([reply(AXPY), reply(slower)], attempts=2, target=2.0)
    feedback = provider.requests[1].messages[-1].text
    assert "It is right. Make it faster" in feedback
    # Without a GPU the profile is what the compiler says.
    assert "registers: " in feedback
    assert "a thread" in feedback
    assert result.accepted.report.is_passed
    assert len(provider.requests) == 2


def test_an_interrupt_in_a_listener_closes_the_stream():
    problem = make_problem(*make_reference(axpy, axpy_inputs()), intent="x")
    provider = ScriptedProvider([reply(AXPY)])

    def interrupt(event):
        if isinstance(event, TextReceived):
            raise KeyboardInterrupt

    loop = Loop(problem, provider, "cpu", POOL.get("cpu").limits(), LoopOptions(), interrupt)
    with pytest.raises(KeyboardInterrupt):
        loop.run()
    assert provider.closed == 1


class Dear(ScriptedProvider):
    """A prompt takes 0.4 dollars, or 40 tokens, at least."""

    def estimate_usd(self, request):
        return 0.4

    def count_tokens(self, request):
        return 40


@pytest.mark.parametrize(("option", "limit"), [("budget_usd", 0.3), ("token_budget", 39)])
def test_a_prompt_that_the_budget_has_no_room_for_is_not_sent(option, limit):
    error, provider, events = run([reply(AXPY)], kind=Dear, **{option: limit})
    assert isinstance(error, BudgetReachedError)
    assert option in error.next_step
    assert provider.requests == []
    assert any(isinstance(e, GaveUp) for e in events)


@pytest.mark.parametrize(("option", "limit"), [("budget_usd", 0.8), ("token_budget", 50)])
def test_attempts_before_that_are_kept(option, limit):
    error, provider, _ = run([reply(WRONG), reply(AXPY)], kind=Dear, **{option: limit})
    assert isinstance(error, NotAcceptedError)
    assert "no room for another request" in str(error)
    assert option in error.next_step
    assert len(error.attempts) == len(provider.requests) == 1
