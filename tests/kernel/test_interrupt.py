"""Interrupts: what a person who presses the stop button gets."""

from __future__ import annotations

import os

import pytest

from tests.wire.scripts import SILENCE, Script

from .session import Session

ENDLESS = """\
//! double_cuda(x: float32[N]) -> y: float32[N]
//! spin<<<1, 32>>>(x, y, N)
__global__ void spin(const float* x, float* y, int N)
{
    volatile int n = 1;
    while (n) n = 1;
    y[0] = x[0];
}
"""


@pytest.fixture
def asking(jupyter, wire_server, tmp_path):
    """A kernel whose provider is a local server."""
    env = {"ANTHROPIC_API_KEY": "sk-ant-api03-" + "test" * 10, "ANTHROPIC_BASE_URL": wire_server.url}
    with Session.start("llm-cuda", cwd=tmp_path, env={**os.environ, **env}) as session:
        session.run("import numpy as np\nx = np.ones(8, 'float32')\ndef double(x): return x * 2")
        session.run("double_cuda = 'the one before'")
        yield session


def ask_and_interrupt(session, is_time):
    """Run a cell, interrupt it when the live output `is_time` of, and return its reply and final output."""
    updates, sent = [], []

    def watch(message):
        if message["msg_type"] in ("display_data", "update_display_data"):
            updates.append(message["content"]["data"]["text/plain"])
            if not sent and is_time(updates[-1]):
                sent.append(True)
                session.manager.interrupt_kernel()

    reply = session.client.execute_interactive(
        "%%cuda_from double --device cpu\nfast\n", output_hook=watch, timeout=120
    )
    assert sent
    return reply["content"], updates[-1]


def check_interrupted(session, reply, final):
    assert (reply["status"], reply["ename"]) == ("error", "KeyboardInterrupt")
    assert reply["traceback"] == ["KeyboardInterrupt: the cell was stopped; double_cuda is as it was before."]
    assert "interrupted" in final
    assert session.value("double_cuda") == "the one before"
    assert session.value("x.sum().item()") == 8.0


def test_while_the_reply_streams(asking, wire_server):
    wire_server.queue(
        Script(text="Let me think about this for a while. " * 20, broken=SILENCE, break_after=200)
    )
    reply, final = ask_and_interrupt(asking, lambda _: bool(wire_server.requests))

    check_interrupted(asking, reply, final)
    assert wire_server.hung_up.wait(30)


def test_while_an_endless_kernel_runs(asking, wire_server):
    wire_server.queue(Script(text=f"```cuda\n{ENDLESS}```\n"))
    reply, final = ask_and_interrupt(asking, lambda shown: "quick" in shown or "full" in shown)

    check_interrupted(asking, reply, final)
