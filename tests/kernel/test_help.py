"""Help while typing, as a front end asks for it: completion, Shift-Tab, `?` and `??`."""

from __future__ import annotations

import re

import pytest

from .session import Session

SETUP = """\
import numpy as np
x = np.ones(8, 'float32')
def double(x): return x * 2
"""
MAKE = """\
%%cuda double_cuda --from double --device cpu
//! double_cuda(x: float32[N]) -> y: float32[N]
//! twice<<<ceil_div(N, 256), 256>>>(x, y, N)
__global__ void twice(const float* x, float* y, int N)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N) y[i] = 2 * x[i];
}
"""
TITLES = ["Signature", "Contract", "Verified", "Timing", "Not checked", "Written by", "Intent", "Source"]


@pytest.fixture(scope="module", params=["llm-cuda", "python3"])
def session(request, jupyter, tmp_path_factory):
    """Our kernel, and IPython's own with the extension; a verified kernel is in both."""
    with Session.start(request.param, cwd=tmp_path_factory.mktemp("help")) as running:
        running.run("%load_ext llmkernel")
        running.run(SETUP)
        made = running.run(MAKE)
        assert made.reply["status"] == "ok", made.error
        yield running


def inspected(session, code, level):
    found = session.client.inspect(code, detail_level=level, reply=True, timeout=60)["content"]
    assert found["found"]
    return re.sub(r"\x1b\[[0-9;]*m", "", found["data"]["text/plain"])


def titles(text):
    return [
        t for t in re.findall(r"^([A-Z][a-z]+(?: [a-z]+)?):", text, re.MULTILINE) if t in (*TITLES, "Report")
    ]


@pytest.mark.parametrize("code", ["double_cuda", "double_cuda("])
def test_a_kernel_says_what_it_is(session, code):
    text = inspected(session, code, 0)

    assert titles(text) == TITLES
    assert "double_cuda(x: float32[N]) -> y: float32[N]" in text
    assert "✓ passed on CPU" in text
    assert "guard bands" in text
    assert "Emulation" in text
    assert "2 * x[i]" in text


def test_more_detail_adds_the_report(session):
    text = inspected(session, "double_cuda", 1)

    assert titles(text) == [*TITLES[:-1], "Report", "Source"]
    assert "What was checked" in text


@pytest.mark.parametrize(("code", "level"), [("double_cuda?", 0), ("?double_cuda", 0), ("double_cuda??", 1)])
def test_question_marks_say_the_same(session, code, level):
    (page,) = session.run(code).reply["payload"]

    assert re.sub(r"\x1b\[[0-9;]*m", "", page["data"]["text/plain"]) == inspected(
        session, "double_cuda", level
    )


def test_other_objects_are_left_to_ipython(session):
    assert "Docstring" in inspected(session, "np.exp", 0)
    assert "def double" in inspected(session, "double", 1)


def test_magics_explain_themselves(session):
    for magic in ("%%cuda_from", "%%cuda", "%ask", "%kernels", "%llm_usage"):
        text = inspected(session, magic, 0)
        assert f"{magic}" in text
        assert "{'" not in text
        assert "arguments:" in text or "options:" in text


@pytest.mark.parametrize(
    "line", ["%%cuda_from double --device", "%%cuda_from double --provider ", "%ask --fix"]
)
def test_an_option_is_explained_by_its_magic_in_our_kernel(session, line):
    if session.value("type(get_ipython().kernel).__name__") != "LLMCudaKernel":
        # ipykernel's own kernel looks for a variable of that name, and finds none.
        assert not session.client.inspect(line, reply=True, timeout=60)["content"]["found"]
        return
    text = inspected(session, line, 0)

    assert line.split()[0] in text
    assert line.split()[-1] in text


def test_nothing_is_explained_below_the_line_of_a_magic(session):
    code = "%%cuda_from double\nnothing_of_that_name"

    assert not session.client.inspect(code, reply=True, timeout=60)["content"]["found"]


def test_values_are_completed(session):
    assert {"%%cuda", "%%cuda_from"} <= set(session.complete("%%cu"))
    assert session.complete("%%cuda_from double --prov") == ["--provider"]
    assert session.complete("%%cuda_from double --provider cod") == ["codex"]
    assert "claude-opus-5-5" in session.complete("%%cuda_from double --provider claude --model ")
    assert session.complete("%%cuda_from double --inputs x") == ["x"]
    assert session.complete("%ask --kernel ") == ["double_cuda"]


def test_help_is_there_while_a_cell_runs(session):
    client = session.client
    client.control_channel.send(client.session.msg("create_subshell_request", {}))
    subshell = client.get_control_msg(timeout=60)["content"]["subshell_id"]
    session.run("import threading; gate = threading.Event()")
    waiting = client.execute("gate.wait(60)")

    def send(kind, **content):
        message = client.session.msg(kind, content)
        message["header"]["subshell_id"] = subshell
        client.shell_channel.send(message)
        return message["header"]["msg_id"]

    def ask(kind, **content):
        sent = send(kind, **content)
        reply = client.get_shell_msg(timeout=60)
        assert reply["parent_header"]["msg_id"] == sent  # before the cell's own
        return reply["content"]

    line = "%%cuda_from dou"
    assert ask("complete_request", code=line, cursor_pos=len(line))["matches"] == ["double", "double_cuda"]
    help_text = ask("inspect_request", code="double_cuda", cursor_pos=3, detail_level=0)["data"]["text/plain"]
    assert "2 * x[i]" in help_text
    opened = send("execute_request", code="gate.set()", silent=False, user_expressions={})
    # Once the gate is open, either may be told first.
    ended = {client.get_shell_msg(timeout=60)["parent_header"]["msg_id"] for _ in range(2)}
    assert ended == {opened, waiting}
