"""What a question puts below as a cell, and what the stop button does to an answer."""

from __future__ import annotations

import os

import pytest

from tests.wire.scripts import SILENCE, Script, reply

from .session import Session

SETUP = """\
import numpy as np
x = np.random.default_rng(0).standard_normal((33, 70), dtype="float32")
factor = np.float32(1.5)

def scaled(x, factor):
    return x * factor
"""
KERNEL = """\
//! scaled_cuda(x: float32[M, N], factor: float32) -> y: float32[M, N]
//! scale<<<ceil_div(M * N, 256), 256>>>(x, y, factor, M * N)
__global__ void scale(const float* __restrict__ x, float* __restrict__ y, float factor, long long count)
{
    const long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
    if (i < count) y[i] = x[i] * factor;
}
"""
CHANGED = KERNEL.replace("256", "128")
WRONG = KERNEL.replace("* factor;", "+ factor;")
MAKE = '%%cuda scaled_cuda --from scaled --device cpu --inputs "x, factor=factor"\n' + KERNEL


@pytest.fixture
def session(jupyter, wire_server, tmp_path):
    """A kernel whose provider is a local server."""
    env = {"ANTHROPIC_API_KEY": "sk-ant-api03-" + "test" * 10, "ANTHROPIC_BASE_URL": wire_server.url}
    with Session.start("llm-cuda", cwd=tmp_path, env={**os.environ, **env}) as session:
        yield session


def below(cell):
    """The texts that a cell puts below itself."""
    return [p["text"] for p in cell.reply["payload"] if p["source"] == "set_next_input"]


def code(*blocks):
    return "Here.\n\n" + "\n\n".join(f"```{tag}\n{text}\n```" for tag, text in blocks)


def test_cells_are_put_below_and_not_run(session, wire_server):
    wire_server.queue(
        reply(code(("python", "ran = 1 / 1"))),
        reply(code(("python", "a = 1"), ("text", "no"), ("py", "ran = a"))),
        reply("No code at all."),
        reply(code(("python", "ran = 0"))),
    )
    session.run("ran = 0")
    session.run("ran = 1 / 0")

    assert below(session.run("%ask --fix")) == ["ran = 1 / 1"]
    assert below(session.run("%ask --code --no-error show me?")) == ["a = 1\n\nran = a"]
    assert below(session.run("%ask --code show me?")) == []
    session.run("ran = 0")
    unchanged = session.run("%%ask --fix\nIs it right?")
    assert below(unchanged) == []
    assert session.value("ran") == 0
    assert "```python\nran = 0\n```" in str(wire_server.requests[-1].body["messages"][-1]).encode().decode(
        "unicode_escape"
    )


def test_a_changed_kernel_is_offered_once_it_has_passed(session, wire_server):
    wire_server.queue(
        reply(code(("cuda", WRONG))), reply(code(("cuda", CHANGED))), reply("Leave it."), reply("It is fine.")
    )
    session.run(SETUP)
    made = session.run(MAKE)
    assert made.reply["status"] == "ok", made.error

    wrong = session.run("%ask --kernel scaled_cuda --fix use smaller blocks")
    assert wrong.reply["status"] == "error"
    assert "NotAcceptedError" in wrong.error
    assert below(wrong) == []
    right = session.run("%ask --kernel scaled_cuda --fix use smaller blocks")
    assert below(right) == [MAKE.replace("256", "128").rstrip("\n")]
    first = str(wire_server.requests[0].body)
    assert "use smaller blocks" in first
    assert "return x * factor" in first
    assert "long long count" in first

    assert session.run(below(right)[0]).reply["status"] == "ok"
    assert "128" in session.value("scaled_cuda.source")
    assert "No changed kernel to judge" in session.run("%ask --kernel scaled_cuda --fix faster?").text
    session.run("%ask --kernel scaled_cuda why is it right?")
    last = str(wire_server.requests[-1].body["messages"])
    assert "wrong_value" in last
    assert "128" in last


def test_a_kernel_of_the_records_can_be_asked_about(session, wire_server):
    wire_server.queue(reply("It scales."))
    session.run(SETUP)
    session.run(MAKE)
    session.run("del scaled_cuda")

    assert session.run("%ask --kernel scaled_cuda what does it do?").reply["status"] == "ok"
    assert "long long count" in str(wire_server.requests[0].body)
    missing = session.run("%ask --kernel scaled_cuda --fix faster")
    assert "Run the cell that makes it" in missing.error
    assert "Did you mean scaled_cuda" in session.run("%ask --kernel scaled_cudo why").error
    assert len(wire_server.requests) == 1


def test_the_stop_button_hangs_up_and_keeps_what_arrived(session, wire_server):
    wire_server.queue(Script(text="Let me think about it. " * 20, broken=SILENCE, break_after=200))
    shown, stopped = [], []

    def watch(message):
        if message["msg_type"] in ("display_data", "update_display_data"):
            shown.append(message["content"]["data"]["text/plain"])
            if not stopped and "Let me think" in shown[-1]:
                stopped.append(True)
                session.manager.interrupt_kernel()

    answer = session.client.execute_interactive("%ask why?", output_hook=watch, timeout=60)["content"]

    assert (answer["status"], answer["ename"]) == ("error", "KeyboardInterrupt")
    assert len(answer["traceback"]) == 1
    assert "Let me think about it." in shown[-1]
    assert "Partial answer: interrupted" in shown[-1]
    assert wire_server.hung_up.wait(30)
    assert session.value("1 + 1") == 2
