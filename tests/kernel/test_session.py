"""The kernel as a notebook sees it."""

from __future__ import annotations

import pytest

from .session import Session

HEAVY = ("torch", "cupy", "anthropic", "openai", "ipywidgets", "numpy", "ml_dtypes", "cuda")


def test_the_start_imports_nothing_heavy(session):
    assert session.value(f"[m for m in {HEAVY} if m in __import__('sys').modules]") == []


def test_kernel_info(session):
    info = session.client.kernel_info(reply=True, timeout=30)["content"]

    assert info["implementation"] == "llm-cuda"
    assert info["language_info"]["pygments_lexer"] == "ipython3"
    assert info["banner"].startswith("LLM-CUDA")
    assert {"debugger", "kernel subshells"} <= set(info["supported_features"])


def test_ipython_still_works(session):
    assert session.run("print('text'); 6 * 7").text == "text\n42"
    assert "loop" in session.run("%timeit -n1 -r1 sum(range(10))").text
    assert session.run("import asyncio\nawait asyncio.sleep(0)\n'awaited'").text == "'awaited'"
    assert session.run("!echo shell").text.strip() == "shell"
    assert "ZeroDivisionError" in session.run("1/0").error
    assert "zip(" in str(session.client.inspect("zip", reply=True, timeout=30)["content"]["data"])


def test_a_misspelt_reference_is_one_readable_error(session):
    session.run("def softmax(x): return x")
    cell = session.run("%%cuda_from sofmax\nOne row a block.\n")

    assert cell.reply["status"] == "error"
    assert cell.reply["ename"] == "ReferenceProblem"
    assert "Did you mean softmax?" in cell.error
    assert "Traceback" not in cell.error
    assert len(cell.error.splitlines()) <= 4


@pytest.mark.parametrize("code", ["%%cuda_from softmax", "%%cuda_from softmax\n  \n", "%cuda_from softmax"])
def test_no_intent_is_a_usage_error_that_stops_run_all(session, code):
    cell = session.run(code)

    assert cell.reply["status"] == "error"
    assert cell.reply["ename"] == "UsageError"
    assert "usage: %%cuda_from REFERENCE" in cell.error


def test_a_failing_cell_cancels_those_queued_behind_it(session):
    first = session.client.execute("%%cuda_from nothing\nfast\n")
    second = session.client.execute("ran_on = True")
    replies = {}
    while len(replies) < 2:
        reply = session.client.get_shell_msg(timeout=30)
        replies[reply["parent_header"]["msg_id"]] = reply["content"]["status"]

    assert replies == {first: "error", second: "aborted"}


def test_a_magic_below_a_comment_is_explained(session):
    cell = session.run("# now the fast one\n%%cuda_from softmax\nOne row a block.\n")

    assert cell.reply["status"] == "error"
    assert "first line" in cell.error


def test_help(session):
    (page,) = session.run("%%cuda_from?").reply["payload"]

    assert "--tolerance" in page["data"]["text/plain"]


def test_completion(session):
    session.run("def softmax(x): return x")

    assert "%%cuda_from" in session.complete("%%cuda")
    assert session.complete("%%cuda_from soft") == ["softmax"]
    assert session.complete("%%cuda_from softmax --device cu") == ["cuda"]
    assert session.complete("%%cuda_from softmax --dev\nOne row", len("%%cuda_from softmax --dev")) == [
        "--device"
    ]


def test_the_extension_can_be_unloaded_and_loaded_again(session):
    session.run("%unload_ext llmkernel")
    assert "not found" in session.run("%%cuda_from softmax\nx\n").text
    assert session.run("%load_ext llmkernel").reply["status"] == "ok"
    assert session.run("%reload_ext llmkernel").reply["status"] == "ok"
    assert "usage" in session.run("%%cuda_from softmax").error


def test_a_subshell_answers_while_a_cell_runs(session):
    client = session.client
    client.control_channel.send(client.session.msg("create_subshell_request", {}))
    subshell = client.get_control_msg(timeout=30)["content"]["subshell_id"]
    session.run("import threading; gate = threading.Event()")

    waiting = client.execute("gate.wait(30)")
    message = client.session.msg(
        "execute_request", {"code": "gate.set()", "silent": False, "user_expressions": {}}
    )
    message["header"]["subshell_id"] = subshell
    client.shell_channel.send(message)
    statuses = {}
    while len(statuses) < 2:
        reply = client.get_shell_msg(timeout=30)
        statuses[reply["parent_header"]["msg_id"]] = reply["content"]["status"]

    assert statuses == {waiting: "ok", message["header"]["msg_id"]: "ok"}


def test_the_debugger_answers(session):
    client = session.client
    arguments = {"clientID": "test", "adapterID": "", "pathFormat": "path"}
    message = client.session.msg(
        "debug_request", {"seq": 1, "type": "request", "command": "initialize", "arguments": arguments}
    )
    client.control_channel.send(message)
    content = client.get_control_msg(timeout=30)["content"]

    assert content["success"] is True
    assert content["command"] == "initialize"


def test_an_encrypted_connection(jupyter, tmp_path):
    """The kernelspec says that the kernel speaks CurveZMQ."""
    with Session.start("llm-cuda", cwd=tmp_path, transport_encryption="required") as encrypted:
        assert encrypted.client.curve_publickey
        assert encrypted.value("6 * 7") == 42
