"""The live view with real widgets, their messages caught on the way to a front end."""

from __future__ import annotations

import threading
from dataclasses import replace
from types import SimpleNamespace

import pytest
from comm.base_comm import BaseComm

from llmkernel.display import live, widget_surface
from llmkernel.display.bundle import report_bundle
from llmkernel.display.live import LiveOutput
from llmkernel.display.subshell_comm import SubshellComm
from llmkernel.display.surface import NotebookSurface
from llmkernel.display.widget_surface import WidgetSurface
from llmkernel.evaluation.report import Measurement
from llmkernel.synthesis.events import (
    AttemptFinished,
    CheckFinished,
    PromptBuilt,
    SamplesTaken,
    StageStarted,
    TextReceived,
)
from tests.unit.display import examples as ex
from tests.unit.display.html_check import check_html, visible_text

pytest.importorskip("ipywidgets", reason="ipywidgets is not installed")

MESSAGES = (("system", "You write CUDA."), ("user", "Softmax over the last axis."))
PROMPT = PromptBuilt(1, 5, "claude · claude-opus-5-5", 1200, MESSAGES)
AGAIN = PromptBuilt(2, 5, "claude", 1500, (*MESSAGES, ("assistant", "…"), ("user", "expff is undefined.")))
VIEW_MIME = "application/vnd.jupyter.widget-view+json"


WITH_SUBSHELL = SimpleNamespace(
    shell_channel_thread=SimpleNamespace(manager=SimpleNamespace(list_subshell=lambda: ["one"]))
)


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


class Wire:
    """Everything that goes to the front end: comm messages, and what is displayed under which id."""

    def __init__(self) -> None:
        self.messages: list[tuple[str, str, dict]] = []
        self.outputs: list[tuple[dict, str | None, bool]] = []

    def publish(self, data, metadata=None, source="", *, transient=None, update=False, **extra):
        self.outputs.append((data, (transient or {}).get("display_id"), update))

    def of(self, kind: str) -> list[str]:
        return [comm for name, comm, _ in self.messages if name == kind]


@pytest.fixture
def wire(monkeypatch):
    wire = Wire()

    def publish_msg(self, msg_type, data=None, metadata=None, buffers=None, **keys):
        wire.messages.append((msg_type, self.comm_id, data or {}))

    caught = type("Caught", (BaseComm,), {"publish_msg": publish_msg})
    monkeypatch.setattr("comm.create_comm", caught)
    monkeypatch.setattr(SubshellComm, "publish_msg", publish_msg)
    shell = SimpleNamespace(display_pub=wire, kernel=None)
    monkeypatch.setattr("IPython.core.interactiveshell.InteractiveShell.initialized", lambda: True)
    monkeypatch.setattr("IPython.core.interactiveshell.InteractiveShell.instance", lambda: shell)
    wire.shell = shell
    yield wire
    for kept in list(widget_surface._KEPT):
        widget_surface._KEPT.pop(kept).close()


@pytest.fixture
def clock() -> Clock:
    return Clock()


def view(wire, clock, **options) -> LiveOutput:
    output = LiveOutput(
        "softmax", surface=WidgetSurface(wire.shell, **options), clock=clock, is_ticking=False
    )
    output._surface._on_cancel = output.cancel
    return output


def widget_of(output: LiveOutput):
    return output._surface._widget


def click(button) -> None:
    button._handle_msg(
        {"content": {"data": {"method": "custom", "content": {"event": "click"}}}, "buffers": []}
    )


def check(box, *, is_on: bool = True) -> None:
    box._handle_msg(
        {
            "content": {"data": {"method": "update", "state": {"value": is_on}, "buffer_paths": []}},
            "buffers": [],
        }
    )


def chosen(widget) -> list[int]:
    return [number for number, box in widget._boxes.items() if box.value]


def test_the_widgets_stand_where_the_report_will_and_nothing_of_them_is_left(wire, clock):
    with view(wire, clock) as output:
        output(PROMPT)
        clock.now += 1
        output(AttemptFinished(ex.ATTEMPTS[0]))
        model = widget_of(output).box.model_id
        report = report_bundle(ex.PASSED)
        output.finish(report)
    (first, at, _), (last, end, is_update) = wire.outputs

    assert first[VIEW_MIME]["model_id"] == model
    assert "working" in first["text/plain"]
    assert "working" in visible_text(first["text/html"])
    assert (end, is_update) == (at, True)
    assert last == report
    assert sorted(wire.of("comm_open")) == sorted(wire.of("comm_close"))


def test_the_report_is_the_same_as_without_widgets(wire, clock):
    report = report_bundle(ex.PASSED)
    for surface in (WidgetSurface(wire.shell), NotebookSurface(wire.shell)):
        with LiveOutput("softmax", surface=surface, clock=clock, is_ticking=False) as output:
            output(PROMPT)
            output.finish(report)
    shown = [data for data, _, is_update in wire.outputs if is_update]

    assert shown[0] == shown[1] == report


def test_updates_come_at_most_ten_times_a_second_and_only_of_what_changed(wire, clock):
    wire.shell.kernel = WITH_SUBSHELL
    output = view(wire, clock)
    output(PROMPT)
    output(TextReceived("```cuda\n"))
    clock.now += 1
    output(TextReceived("int x;\n"))
    wire.messages.clear()
    for _ in range(1000):
        clock.now += 0.004
        output(TextReceived("int y = 1;\n"))

    assert 36 <= len(wire.messages) <= 41
    assert {comm for _, comm, _ in wire.messages} == {widget_of(output).now.model_id}
    assert max(len(str(data)) for _, _, data in wire.messages) < 10_000
    output.fail()


def test_a_click_on_cancel_interrupts_once_and_never_after_the_end(wire, clock, monkeypatch):
    interrupts = []
    monkeypatch.setattr(live, "interrupt_main_thread", lambda: interrupts.append(1))
    output = view(wire, clock)
    output(PROMPT)
    button = widget_of(output).cancel
    clock.now += 1
    click(button)

    assert interrupts == [1]
    assert button.disabled
    assert button.description == "Stopping…"
    click(button)
    assert interrupts == [1]
    output.interrupt()
    click(button)
    assert interrupts == [1]
    assert "interrupted" in wire.outputs[-1][0]["text/plain"]


def test_cancel_reaches_the_main_thread_while_it_waits(wire, clock):
    with pytest.raises(KeyboardInterrupt), view(wire, clock) as output:
        output(PROMPT)
        clicks = threading.Thread(target=click, args=(widget_of(output).cancel,))
        clicks.start()
        try:
            threading.Event().wait(20)
        finally:
            clicks.join()

    assert "interrupted" in wire.outputs[-1][0]["text/plain"]


def test_attempts_are_compared_side_by_side_and_others_can_be_chosen(wire, clock):
    output = view(wire, clock)
    output(PROMPT)
    output(AttemptFinished(ex.ATTEMPTS[0]))
    clock.now += 1
    output(AGAIN)
    widget = widget_of(output)
    assert widget.comparison.layout.display == "none"

    output(AttemptFinished(ex.ATTEMPTS[1]))
    clock.now += 1
    output.tick()
    assert widget.comparison.layout.display is None
    assert [box.value for box in widget._boxes.values()] == [True, True]
    text = visible_text(widget.compared.value)
    assert "attempt 1: not compiled" in text
    assert "− y[(long long)blockIdx.x * N + threadIdx.x] = expff(" in text
    assert "+ y[(long long)blockIdx.x * N + threadIdx.x] = expf(" in text
    assert "equal lines" in text
    assert 'class="k"' in widget.compared.value

    output(AttemptFinished(replace(ex.ATTEMPTS[0], number=3)))
    clock.now += 1
    output.tick()
    assert chosen(widget) == [2, 3]
    assert "attempt 2: passed" in visible_text(widget.compared.value)
    check(widget._boxes[1])
    assert chosen(widget) == [1, 3]
    assert "attempt 1: not compiled beside attempt 3: not compiled: unchanged" in widget.compared.value
    check(widget._boxes[3], is_on=False)
    assert chosen(widget) == [1]
    assert visible_text(widget.compared.value) == "Choose two of them."
    check(widget._boxes[2])
    assert chosen(widget) == [1, 2]
    assert "attempt 1: not compiled beside attempt 2: passed" in widget.compared.value
    output.fail()


def test_what_was_sent_is_shown_and_repeated_parts_are_named_only(wire, clock):
    output = view(wire, clock)
    output(PROMPT)
    clock.now += 1
    output(AGAIN)
    first, second = (visible_text(part.value) for part in widget_of(output).sent.children)

    assert "You write CUDA." in first
    assert "Softmax over the last axis." in first
    assert "2 parts as in the attempts above" in second
    assert "expff is undefined." in second
    assert "You write CUDA." not in second
    output.fail()


def test_what_is_folded_out_stays_so_while_the_reply_streams(wire, clock):
    output = view(wire, clock)
    output(PROMPT)
    output(AttemptFinished(ex.ATTEMPTS[0]))
    clock.now += 1
    output(AGAIN)
    before = [part.value for part in (*widget_of(output).sent.children, *widget_of(output).finished.children)]
    wire.messages.clear()
    for _ in range(20):
        clock.now += 1
        output(TextReceived("more\n"))

    after = [part.value for part in (*widget_of(output).sent.children, *widget_of(output).finished.children)]
    assert after == before
    assert set(wire.of("comm_msg")) <= {
        widget_of(output).now.model_id,
        widget_of(output).announced.model_id,
    } | {w.model_id for w in (widget_of(output).cancel.layout, widget_of(output).hint)}
    output.fail()


def test_bars_are_drawn_while_samples_arrive(wire, clock):
    output = view(wire, clock)
    output(PROMPT)
    output(StageStarted("timing"))
    clock.now += 1
    output(
        SamplesTaken(
            (Measurement("this kernel", 0.1, 0.09, 0.12, 40), Measurement("eager", 0.2, 0.19, 0.21, 20))
        )
    )
    html = widget_of(output).now.value
    text = visible_text(html)

    assert "Timing, so far" in text
    assert "60 samples" in text
    assert "nothing is claimed" in text
    assert html.count('class="wsk"') == 2
    clock.now += 1
    output(AGAIN)
    assert "Timing, so far" not in widget_of(output).now.value
    output.fail()


def test_a_screen_reader_is_told_where_something_begins_and_not_with_every_second(wire, clock):
    output = view(wire, clock)
    told = []
    for event in (
        PROMPT,
        TextReceived("a"),
        *[TextReceived("b")] * 5,
        StageStarted("full"),
        AttemptFinished(ex.ATTEMPTS[0]),
        AGAIN,
    ):
        output(event)
        clock.now += 1
        output.tick()
        value = widget_of(output).announced.value
        assert 'role="status"' in value
        told += [visible_text(value)] if told[-1:] != [visible_text(value)] else []

    assert told == [
        "softmax: asking",
        "softmax: reply",
        "softmax: full verification",
        "softmax: Attempt 1: not compiled. full verification",
        "softmax: Attempt 1: not compiled. asking",
    ]
    output.fail()


def test_where_clicks_wait_for_the_end_the_view_says_what_stops_the_cell(wire, clock):
    output = view(wire, clock)
    output(PROMPT)
    clock.now += 2
    output.tick()
    widget = widget_of(output)
    assert widget.cancel.layout.display is None

    clock.now += 2
    output.tick()
    assert widget.cancel.layout.display == "none"
    assert "stop button" in widget.hint.value

    wire.shell.kernel = WITH_SUBSHELL
    clock.now += 2
    output.tick()
    assert widget.cancel.layout.display is None
    output.fail()


def test_a_kept_view_stands_below_the_report_until_the_cell_runs_again(wire, clock):
    def run():
        with view(wire, clock, keeps=True) as output:
            output(PROMPT)
            output(CheckFinished(ex.CHECKS[0]))
            output(SamplesTaken((ex.TIMING.kernel,)))
            output(AttemptFinished(ex.ATTEMPTS[1]))
            kept = widget_of(output)
            output.finish(report_bundle(ex.PASSED))
        return kept

    kept = run()
    shown, display_id, _ = wire.outputs[-1]
    assert shown[VIEW_MIME] == kept.view
    assert display_id is None
    assert wire.outputs[-2][0] == report_bundle(ex.PASSED)
    assert wire.of("comm_close") == []
    text = visible_text(kept.now.value)
    assert "✓ passed · softmax" in text
    assert "working" not in text
    assert "so far" not in text
    assert "1.68 × the best baseline" in visible_text(kept.finished.children[0].value)
    assert kept.cancel.disabled

    run()
    assert kept.box.comm is None


def test_a_record_that_is_found_needs_no_widgets(wire, clock):
    with view(wire, clock) as output:
        output(StageStarted("replay", "verified on this machine before"))
        output.finish(report_bundle(ex.PASSED))

    assert wire.messages == []
    assert all(VIEW_MIME not in data for data, _, _ in wire.outputs)


def test_a_view_that_cannot_be_made_leaves_the_plain_one(wire, clock, monkeypatch):
    from llmkernel.display import live_widget

    def broken(*_):
        raise OSError("no front end")

    monkeypatch.setattr(live_widget, "LiveWidget", broken)
    with view(wire, clock) as output:
        output(PROMPT)
        clock.now += 1
        output(TextReceived("x"))
        output.finish(report_bundle(ex.PASSED))

    assert ["working" in data["text/plain"] for data, _, _ in wire.outputs] == [True, True, False]


@pytest.mark.parametrize(
    "text", ["<script>alert(1)</script>", "</style><img src=x onerror=1>", "\u202e\x1b[31m", "&lt;b&gt;"]
)
def test_nothing_that_was_sent_or_written_becomes_markup(wire, clock, text):
    output = view(wire, clock)
    for number in (1, 2):
        output(PromptBuilt(number, 2, text, 1, (("system", text), (text, text * 2))))
        output(TextReceived(f"```cuda\n{text}\n"))
        output(AttemptFinished(replace(ex.ATTEMPTS[0], number=number, source=f"{text}\n{number}\n{text}")))
        clock.now += 1
        output.tick()
    widget = widget_of(output)
    parts = [widget.now, widget.announced, widget.compared, *widget.sent.children, *widget.finished.children]
    for part in parts:
        check_html(part.value)
    output.fail()
