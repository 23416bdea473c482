from __future__ import annotations

import io

import pytest

from llmkernel.display.answer import MAX_CHARACTERS, AnswerOutput
from llmkernel.display.surface import Surface, TerminalSurface
from llmkernel.providers.base import Reply, Started, TextDelta, Thinking, Usage, Waiting


class Recording(Surface):
    def __init__(self, is_live=True):
        self.is_live = is_live
        self.updates, self.lines, self.closed = [], [], []

    def update(self, bundle):
        self.updates.append(bundle)

    def line(self, text):
        self.lines.append(text)

    def close(self, bundle):
        self.closed.append(bundle)


class Time:
    now = 0.0

    def __call__(self):
        return self.now


def make():
    surface, clock = Recording(), Time()
    output = AnswerOutput("claude · m", "the question", surface=surface, clock=clock, is_ticking=False)
    return output, surface, clock


WHOLE = Reply("Hello there", "end", "m", Usage(1200, 1000, 0, 30), cost_usd=0.0042)


def test_the_static_output_says_who_was_asked_and_what_it_took():
    output, surface, _ = make()
    with output:
        output(Started("m"))
        output(TextDelta("Hello "))
        output(TextDelta("*there*"))
        output(WHOLE)

    (final,) = surface.closed
    assert set(final) == {"text/markdown", "text/plain"}
    assert final["text/markdown"].startswith(
        "Hello *there*\n\n*claude · m · sent: the question · 1\u202f200 tokens in"
    )
    assert "(1\u202f000 cached), 30 out, 0.0042 USD" in final["text/plain"]
    assert "Partial" not in final["text/plain"]


def test_at_most_ten_updates_a_second_and_nothing_is_lost():
    output, surface, clock = make()
    with output:
        for i in range(1000):
            clock.now = i / 1000
            output(TextDelta("x"))
        output.tick()

    assert len(surface.updates) <= 11
    assert surface.closed[0]["text/plain"].startswith("x" * 1000)


def test_what_is_pending_is_shown_while_the_stream_is_silent():
    output, surface, clock = make()
    with output:
        output(TextDelta("arrived at once"))
        assert "arrived" not in surface.updates[-1]["text/plain"]
        clock.now = 0.2
        output.tick()
        assert "arrived at once" in surface.updates[-1]["text/plain"]
        shown = len(surface.updates)
        output.tick()
        assert len(surface.updates) == shown


def test_the_seconds_go_on_while_it_thinks():
    output, surface, clock = make()
    with output:
        output(Thinking())
        clock.now = 12.0
        output.tick()
        assert "thinking… 12 s" in surface.updates[-1]["text/plain"]
        output(Waiting(7.0, "rate limit"))
        clock.now = 13.0
        output.tick()
        assert "waiting 7 s: rate limit" in surface.updates[-1]["text/plain"]


def test_long_answers_are_updated_less_often_and_cut():
    output, surface, clock = make()
    with output:
        for i in range(100):
            clock.now = i / 10
            output(TextDelta("y " * 5000))
    sent = sum(len(u["text/markdown"]) + len(u["text/plain"]) for u in surface.updates)

    assert sent < 10 * 1_000_000
    assert len(surface.closed[0]["text/markdown"]) < MAX_CHARACTERS + 1000
    assert "more characters" in surface.closed[0]["text/plain"]


@pytest.mark.parametrize(
    ("error", "ending"),
    [(KeyboardInterrupt(), "interrupted"), (ValueError("no"), "it ended with ValueError")],
)
def test_what_arrived_stays_and_is_marked(error, ending):
    output, surface, _ = make()
    with pytest.raises(type(error)), output:
        output(TextDelta("One half, ```"))
        raise error

    assert "One half" in surface.closed[0]["text/markdown"]
    assert f"**Partial answer: {ending}.**" in surface.closed[0]["text/markdown"]
    if isinstance(error, KeyboardInterrupt):
        assert len(error._render_traceback_()) == 1


def test_nothing_arrived():
    output, surface, _ = make()
    with pytest.raises(ValueError), output:
        raise ValueError

    assert "No answer: it ended with ValueError." in surface.closed[0]["text/plain"]


def test_an_answer_that_was_cut_off_says_so():
    output, surface, _ = make()
    with output:
        output(TextDelta("Half"))
        output(Reply("Half", "max_tokens", "m"))

    assert "Partial answer: it reached its token limit." in surface.closed[0]["text/plain"]


ANSWER = [TextDelta(piece) for piece in ("one\ntw", "o\nthr", "ee")]


def test_a_terminal_gets_each_line_once_and_as_it_comes():
    stream = io.StringIO()
    surface = TerminalSurface(stream, is_report_shown=True)
    with AnswerOutput("claude · m", "the question", surface=surface) as output:
        output(ANSWER[0])
        assert stream.getvalue() == "one\n"
        output(ANSWER[1])
        output(ANSWER[2])
        output(WHOLE)

    assert stream.getvalue().startswith("one\ntwo\nthree\n\nclaude · m")


@pytest.mark.parametrize("kind", ["notebook", "terminal"])
def test_quiet_shows_the_whole_answer_at_its_end(kind):
    stream = io.StringIO()
    surface = Recording(is_live=False)
    if kind == "terminal":
        surface = TerminalSurface(stream, is_report_shown=True, is_quiet=True)
    with AnswerOutput("claude · m", "the question", surface=surface, quiet=True) as output:
        for event in (*ANSWER, WHOLE):
            output(event)
            assert stream.getvalue() == ""

    shown = stream.getvalue() if kind == "terminal" else surface.closed[0]["text/plain"]
    assert shown.startswith("one\ntwo\nthree\n\nclaude · m")


def test_a_front_end_that_fails_does_not_end_the_answer(capsys):
    output, surface, _ = make()

    def update(bundle):
        raise OSError("gone")

    surface.update = update
    with output:
        output(TextDelta("still here"))

    assert "still here" in surface.closed[0]["text/plain"]
    assert capsys.readouterr().err.count("OSError") == 1
