"""What is seen while a kernel is being made, with a clock of our own."""

from __future__ import annotations

import io
import re

import pytest

from llmkernel.display.bundle import report_bundle
from llmkernel.display.live import LiveOutput
from llmkernel.display.live_state import LiveState
from llmkernel.display.live_view import live_bundle
from llmkernel.display.surface import NotebookSurface, Surface, TerminalSurface, choose_surface
from llmkernel.errors import NotAcceptedError
from llmkernel.synthesis.events import (
    Accepted,
    AttemptFinished,
    CheckFinished,
    GaveUp,
    PromptBuilt,
    StageStarted,
    TextReceived,
    ThinkingSeen,
    WaitingSeen,
)
from tests.unit.display import examples as ex
from tests.unit.display.html_check import visible_text

PROMPT = PromptBuilt(1, 5, "claude · claude-opus-5-5", 1200)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Recorder(Surface):
    """Keeps everything that it is shown."""

    is_live = True

    def __init__(self) -> None:
        self.updates: list[dict] = []
        self.lines: list[str] = []
        self.closed: list[dict] = []

    def update(self, bundle):
        self.updates.append(bundle)

    def line(self, text):
        self.lines.append(text)

    def close(self, bundle):
        self.closed.append(bundle)

    @property
    def shown(self) -> str:
        return visible_text(self.updates[-1]["text/html"])


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def surface() -> Recorder:
    return Recorder()


@pytest.fixture
def live(clock, surface) -> LiveOutput:
    return LiveOutput("softmax", surface=surface, clock=clock, is_ticking=False)


def test_updates_come_at_most_ten_times_a_second(live, clock, surface):
    live(PROMPT)
    for _ in range(1000):
        clock.now += 0.004
        live(TextReceived("x"))

    # 4 s of tokens: the first one, and one each 0.1 s.
    assert 36 <= len(surface.updates) <= 41


def test_what_is_pending_is_shown_by_the_next_tick(live, clock, surface):
    live(PROMPT)
    live(TextReceived("the last words"))
    assert len(surface.updates) == 1

    clock.now += 0.05
    live.tick()
    assert len(surface.updates) == 1

    clock.now += 0.06
    live.tick()
    assert len(surface.updates) == 2
    assert "the last words" in surface.shown

    live.tick()
    assert len(surface.updates) == 2


def test_time_moves_on_while_nothing_happens(live, clock, surface):
    live(PROMPT)
    live(WaitingSeen(20.0, "rate limited"))
    clock.now += 5.0
    live.tick()
    assert "waiting 15 s: rate limited" in surface.shown

    clock.now += 10.0
    live.tick()
    assert "waiting 5 s: rate limited" in surface.shown
    assert "15.0 s" in surface.shown


def test_the_end_replaces_everything_whatever_was_pending(live, clock, surface):
    live(PROMPT)
    live(TextReceived("pending"))
    bundle = report_bundle(ex.PASSED)
    live.finish(bundle)

    assert surface.closed == [bundle]
    live(TextReceived("late"))
    clock.now += 10
    live.tick()
    live.fail()
    live.finish(bundle)
    assert surface.closed == [bundle]
    assert len(surface.updates) == 1


def test_a_display_that_breaks_does_not_end_the_synthesis(clock, capsys):
    class Broken(Recorder):
        def update(self, bundle):
            self.updates.append(bundle)
            raise OSError("no connection")

    surface = Broken()
    with LiveOutput("softmax", surface=surface, clock=clock, is_ticking=False) as live:
        for _ in range(5):
            clock.now += 1
            live(PROMPT)
        live.finish(report_bundle(ex.PASSED))

    assert len(surface.updates) == 1
    assert len(surface.closed) == 1
    assert capsys.readouterr().err == "llmkernel: the live output stopped: OSError: no connection\n"


def test_checks_turn_up_one_by_one(live, clock, surface):
    live(PROMPT)
    live(StageStarted("full", "14 sizes"))
    for number, check in enumerate(ex.CHECKS, 1):
        clock.now += 1
        live(CheckFinished(check))
        assert surface.shown.count("✓") == 1 + sum(c.status == "passed" for c in ex.CHECKS[:number])

    assert "full verification – 14 sizes" in surface.shown
    assert "racecheck not run" in surface.shown


def test_stages_keep_the_time_they_took(live, clock, surface):
    live(PROMPT)
    clock.now += 2
    live(ThinkingSeen("the rows"))
    clock.now += 12
    live(TextReceived("a"))
    clock.now += 3
    live(StageStarted("compile"))
    clock.now += 1

    live.tick()
    for stage in (
        "asking – 1\u202f200 tokens · 2.0 s",
        "thinking · 12.0 s",
        "reply · 3.0 s",
        "compile · 1.0 s",
    ):
        assert stage in surface.shown


def test_a_later_attempt_starts_afresh_and_keeps_the_earlier_verdicts(live, clock, surface):
    live(PROMPT)
    live(TextReceived("first reply"))
    live(AttemptFinished(ex.ATTEMPTS[0]))
    clock.now += 1
    live(PromptBuilt(2, 5, "claude", 10))
    clock.now += 1
    live(TextReceived("second reply"))

    assert "attempt 1 ✗ not compiled" in surface.shown
    assert "attempt 2 of 5" in surface.shown
    assert "second reply" in surface.shown
    assert "first reply" not in surface.shown


def test_only_the_last_lines_of_a_reply_are_shown():
    state = LiveState(0.0)
    for number in range(2000):
        state.apply(TextReceived(f"line {number}\n"), 1.0)

    text = visible_text(live_bundle(state, 2.0)["text/html"])
    assert "line 1999" in text
    assert "line 1970" in text
    assert "line 1969 " not in text


def test_a_reply_without_lines_stays_small():
    state = LiveState(0.0)
    for _ in range(200):
        state.apply(TextReceived("y" * 10_000), 1.0)

    assert len(live_bundle(state, 2.0)["text/html"]) < 20_000
    assert "2\u202f000\u202f000 characters so far" in live_bundle(state, 2.0)["text/html"]


@pytest.mark.parametrize("size", [1, 3, 10_000])
def test_code_is_highlighted_however_the_reply_is_cut(size):
    reply = "int is a word here.\n```cuda\nint x = 1;\n```\nand int here\n"
    state = LiveState(0.0)
    for start in range(0, len(reply), size):
        state.apply(TextReceived(reply[start : start + size]), 1.0)

    html = live_bundle(state, 1.0)["text/html"]
    assert html.count('<span class="t">int </span>') == 1


def test_an_interrupt_leaves_its_word_and_what_was_found(live, surface):
    live(PROMPT)
    live(AttemptFinished(ex.ATTEMPTS[0]))
    live.interrupt()

    for text in (visible_text(surface.closed[0]["text/html"]), surface.closed[0]["text/plain"]):
        assert "interrupted" in text
        assert "attempt 1 ✗ not compiled" in text
    assert surface.lines[-1] == "softmax: interrupted"


def test_giving_up_leaves_the_last_report(live, surface):
    live(PROMPT)
    live(AttemptFinished(ex.ATTEMPTS[0]))
    live(GaveUp("5 attempts"))
    live.fail(NotAcceptedError("no"))

    assert surface.closed[0]["text/plain"].startswith("✗ not compiled · softmax")


def test_a_failure_before_anything_began_is_left_to_its_message(live, surface):
    with pytest.raises(ValueError, match="a mistake"), live:
        raise ValueError("a mistake")

    assert (surface.closed, surface.lines) == ([], [])


def test_a_stop_before_anything_began_is_shown(live, surface):
    live.interrupt()

    assert "interrupted" in surface.closed[0]["text/plain"]


def test_a_reason_to_give_up_reads_as_part_of_the_title(live, surface):
    live(PROMPT)
    live(GaveUp("No key for the provider `claude`."))
    live.fail(NotAcceptedError("no"))

    assert surface.closed[0]["text/plain"].startswith("■ gave up: No key for the provider claude · softmax\n")


def test_a_failure_before_any_report_says_where_it_stood(live, surface):
    live(PROMPT)
    live.fail(TimeoutError("slow"))

    text = surface.closed[0]["text/plain"]
    assert "failed: TimeoutError" in text
    assert "■ asking" in text


def test_a_bundle_may_be_given_for_a_failure(live, surface):
    bundle = report_bundle(ex.CRASHED)
    live.fail(bundle)

    assert surface.closed == [bundle]


@pytest.mark.parametrize(
    ("error", "word"), [(KeyboardInterrupt, "interrupted"), (ValueError, "failed: ValueError")]
)
def test_the_context_ends_what_was_left_open(live, surface, error, word):
    with pytest.raises(error), live:
        live(PROMPT)
        raise error

    assert word in surface.closed[0]["text/plain"]


def test_a_ticking_output_shows_the_pending_end_by_itself_and_stops(clock):
    import threading

    shown = threading.Event()

    class Waiter(Recorder):
        def update(self, bundle):
            super().update(bundle)
            if "tail of it" in bundle["text/html"]:
                shown.set()

    surface = Waiter()
    with LiveOutput("softmax", surface=surface, clock=clock) as live:
        live(PROMPT)
        live(TextReceived("tail of it"))
        clock.now += 1
        assert shown.wait(20)
        live.finish(report_bundle(ex.PASSED))

    assert not [t for t in threading.enumerate() if t.name == "llmkernel-live"]


def run_in_terminal(*, is_report_shown: bool, is_quiet: bool = False) -> str:
    stream = io.StringIO()
    surface = TerminalSurface(stream, is_report_shown=is_report_shown, is_quiet=is_quiet)
    with LiveOutput("softmax", surface=surface) as live:
        live(PROMPT)
        for _ in range(50):
            live(ThinkingSeen("hm"))
        for _ in range(500):
            live(TextReceived("word "))
        live(WaitingSeen(3.0, "overloaded"))
        live(StageStarted("compile", "softmax_rows"))
        live(StageStarted("full"))
        for check in ex.CHECKS:
            live(CheckFinished(check))
        live(AttemptFinished(ex.ATTEMPTS[1]))
        live(Accepted(ex.PASSED, "generated"))
        live.finish(report_bundle(ex.PASSED))
    return stream.getvalue()


def test_a_terminal_gets_a_line_a_stage():
    lines = run_in_terminal(is_report_shown=False).splitlines()

    assert lines == [
        "softmax: attempt 1 of 5: asking claude · claude-opus-5-5 (1\u202f200 tokens)",
        "softmax: thinking…",
        "softmax: reply…",
        "softmax: waiting 3.0 s: overloaded",
        "softmax: compile: softmax_rows",
        "softmax: full verification…",
        "softmax: attempt 2 ✓ passed: Right on all 38 draws, 1.68 × the best baseline.",
        "softmax: accepted (generated)",
        "✓ passed · softmax",
        "Right on all 38 draws, 1.68 × the best baseline.",
    ]


def test_a_terminal_ipython_gets_the_report_at_the_end():
    text = run_in_terminal(is_report_shown=True, is_quiet=True)

    assert text == report_bundle(ex.PASSED)["text/plain"] + "\n"


def test_a_quiet_script_prints_nothing():
    assert run_in_terminal(is_report_shown=False, is_quiet=True) == ""


def test_a_terminal_without_unicode_still_gets_the_words():
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    TerminalSurface(stream, is_report_shown=False).line("✓ passed")
    stream.flush()

    assert raw.getvalue() == b"? passed\n"


def test_a_plain_script_without_a_terminal_shows_nothing(monkeypatch):
    monkeypatch.setattr("sys.stderr", io.StringIO())
    monkeypatch.setattr("IPython.get_ipython", lambda: None)

    assert type(choose_surface()) is Surface


def test_a_script_on_a_terminal_gets_lines(monkeypatch):
    stream = io.StringIO()
    stream.isatty = lambda: True
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setattr("IPython.get_ipython", lambda: None)

    choose_surface().line("one")
    assert stream.getvalue() == "one\n"


@pytest.mark.parametrize("is_quiet", [False, True])
def test_a_notebook_has_one_display_id(monkeypatch, is_quiet):
    published = []

    class Publisher:
        def publish(self, data, metadata=None, source="", *, transient=None, update=False, **extra):
            published.append((data, transient["display_id"], update))

    class Shell:
        kernel = object()
        display_pub = Publisher()

    monkeypatch.setattr("IPython.get_ipython", Shell)
    monkeypatch.setattr("IPython.core.interactiveshell.InteractiveShell.initialized", lambda: True)
    monkeypatch.setattr("IPython.core.interactiveshell.InteractiveShell.instance", Shell)
    surface = choose_surface(is_quiet=is_quiet)
    assert isinstance(surface, NotebookSurface)
    clock = Clock()
    with LiveOutput("softmax", surface=surface, clock=clock, is_ticking=False) as live:
        live(PROMPT)
        clock.now += 1
        live(TextReceived("x"))
        live.finish(report_bundle(ex.PASSED))

    assert len({display_id for _, display_id, _ in published}) == 1
    assert [update for _, _, update in published] == ([False] if is_quiet else [False, True, True])
    assert re.search("passed", published[-1][0]["text/plain"])
