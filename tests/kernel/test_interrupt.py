"""Interrupts: what a person who presses the stop button gets, wherever it strikes.

Each wait here would last longer than a test may: an interrupt that is not heard is a failure.
"""

from __future__ import annotations

import os

import pytest

from tests.wire.scripts import SILENCE, Script, anthropic_error
from tests.wire.server import WireServer

from .session import Session

HEADER = "//! double_cuda(x: float32[N]) -> y: float32[N]\n//! spin<<<1, 32>>>(x, y, N)\n"
ENDLESS = f"""\
{HEADER}__global__ void spin(const float* x, float* y, int N)
{{
    volatile int n = 1;
    while (n) n = 1;
    y[0] = x[0];
}}
"""
# A quarter of a million instances: no compiler is through with them in a minute.
ENDLESS_COMPILATION = f"""\
{HEADER}template <int D, int I> struct Tree {{
    static constexpr int v = Tree<D - 1, 2 * I>::v ^ Tree<D - 1, 2 * I + 1>::v; }};
template <int I> struct Tree<0, I> {{ static constexpr int v = I; }};
__global__ void spin(const float* x, float* y, int N)
{{
    if (threadIdx.x < N) y[threadIdx.x] = x[threadIdx.x] * Tree<18, 1>::v;
}}
"""
SETUP = """\
import os, signal, sys, time
import numpy as np
x = np.ones(8, 'float32')
def double(x): return x * 2
def endless(x):
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(600)
class StopsImport:
    def find_spec(self, name, *_):
        if name == self.name:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)
stops_import = StopsImport()
"""
MAKE = "%%cuda_from double --device cpu --replay never\nfast\n"
STOPPED = "KeyboardInterrupt: the cell was stopped; double_cuda is as it was before."


@pytest.fixture(scope="module")
def provider():
    with WireServer() as server:
        yield server


@pytest.fixture(scope="module")
def kernel(jupyter, provider, tmp_path_factory):
    """One kernel, whose provider is a local server, for all of them: it survives every interrupt."""
    env = {"ANTHROPIC_API_KEY": "sk-ant-api03-" + "test" * 10, "ANTHROPIC_BASE_URL": provider.url}
    with Session.start("llm-cuda", cwd=tmp_path_factory.mktemp("stop"), env={**os.environ, **env}) as session:
        yield session


@pytest.fixture
def session(kernel, provider):
    provider.hung_up.clear()
    kernel.run(SETUP)
    kernel.run("double_cuda = 'the one before'")
    yield kernel
    # Nothing of the last cell comes below the next one.
    assert {m["msg_type"] for m in kernel.run("x.sum()").messages} == {
        "status",
        "execute_input",
        "execute_result",
    }
    # The next cell works, nothing half done was kept, and nothing that the last one had was lost.
    assert kernel.value("os.path.exists('kernels')") is False
    assert kernel.value("double_cuda") == "the one before"
    assert kernel.value("x.sum().item()") == 8.0


def press(session, code, is_time=None, times=1):
    """Run a cell, press the stop button when its live output `is_time`, and return reply and last output."""
    updates, sent = [], []

    def watch(message):
        if message["msg_type"] in ("display_data", "update_display_data"):
            updates.append(message["content"]["data"]["text/plain"])
            if is_time is not None and not sent and is_time(updates[-1]):
                sent.append(True)
                for _ in range(times):
                    session.manager.interrupt_kernel()

    reply = session.client.execute_interactive(code, output_hook=watch, timeout=60)["content"]
    assert (reply["status"], reply["ename"]) == ("error", "KeyboardInterrupt")
    (told,) = reply["traceback"]
    return told, updates[-1] if updates else ""


@pytest.mark.parametrize("module", ["llmkernel.synthesis.synthesize", "llmkernel.display.live"])
def test_while_a_magic_imports_what_it_needs(session, module):
    session.run(f"for n in [m for m in sys.modules if m == {module!r}]: del sys.modules[n]")
    session.run(f"stops_import.name = {module!r}; sys.meta_path.insert(0, stops_import)")

    told, _ = press(session, MAKE)

    assert told == "KeyboardInterrupt: the cell was stopped; nothing was assigned."


def test_while_the_reference_runs(session):
    told, final = press(session, MAKE.replace("double", "endless --name double_cuda", 1))

    assert told == STOPPED
    assert "interrupted" in final


def test_while_the_reply_streams(session, provider):
    provider.queue(Script(text="Let me think about this for a while. " * 20, broken=SILENCE, break_after=200))

    told, final = press(session, MAKE, lambda shown: "reply" in shown)

    assert told == STOPPED
    assert "interrupted" in final
    assert provider.hung_up.wait(30)


def test_while_a_rate_limit_is_waited_for(session, provider):
    provider.queue(anthropic_error(429, "rate_limit_error", "slow down", retry_after="100"))

    told, final = press(session, MAKE, lambda shown: "rate limit" in shown)

    assert told == STOPPED
    assert "interrupted" in final


def test_while_a_candidate_is_compiled(session, provider):
    provider.queue(Script(text=f"```cuda\n{ENDLESS_COMPILATION}```\n"))

    told, final = press(session, MAKE, lambda shown: "compile" in shown)

    assert told == STOPPED
    assert "interrupted" in final


def test_while_an_endless_kernel_runs(session, provider):
    provider.queue(Script(text=f"```cuda\n{ENDLESS}```\n"))

    told, final = press(session, MAKE, lambda shown: "quick" in shown)

    assert told == STOPPED
    assert "interrupted" in final


def test_a_second_press_does_not_leave_the_output_at_work(session, provider):
    provider.queue(Script(text="Let me think about this for a while. " * 20, broken=SILENCE, break_after=200))

    told, final = press(session, MAKE, lambda shown: "reply" in shown, times=3)

    assert told.startswith("KeyboardInterrupt: ")
    assert "interrupted" in final


def test_each_cell_has_its_own_output(session, provider):
    """Also one that runs on a subshell while another asks, and one that waits behind it."""
    provider.queue(Script(text="Let me think about this for a while. " * 20, broken=SILENCE, break_after=200))
    client, shown = session.client, {}
    client.control_channel.send(client.session.msg("create_subshell_request", {}))
    subshell = client.get_control_msg(timeout=60)["content"]["subshell_id"]
    beside = client.session.msg(
        "execute_request", {"code": "print('beside')", "silent": False, "user_expressions": {}}
    )
    beside["header"]["subshell_id"] = subshell

    asking = client.execute(MAKE, stop_on_error=False)
    behind = client.execute("print('behind')")
    while shown.get(behind, [])[-1:] != ["idle"]:
        message = client.get_iopub_msg(timeout=60)
        kind, content = message["msg_type"], message["content"]
        of_cell = shown.setdefault(message["parent_header"].get("msg_id"), [])
        if kind in ("display_data", "update_display_data"):
            of_cell.append("live")
            if "reply" in content["data"]["text/plain"] and beside["header"]["msg_id"] not in shown:
                shown[beside["header"]["msg_id"]] = []
                client.shell_channel.send(beside)
        elif kind == "stream":
            of_cell.append(content["text"])
            if content["text"].startswith("beside"):
                session.manager.interrupt_kernel()
        elif kind == "status" and content["execution_state"] == "idle":
            of_cell.append("idle")
    for _ in (asking, beside, behind):
        client.get_shell_msg(timeout=60)

    assert "".join(shown[beside["header"]["msg_id"]]).startswith("beside\n")
    assert "live" not in shown[beside["header"]["msg_id"]] + shown[behind]
    assert shown[behind] == ["behind\n", "idle"]
    assert set(shown[asking]) == {"live", "idle"}
