"""The live view as a front end without a browser sees it: messages of a real kernel."""

from __future__ import annotations

import queue
import time
from typing import Any

import pytest

from .session import TIMEOUT, Session

pytest.importorskip("ipywidgets", reason="ipywidgets is not installed")

VIEW_MIME = "application/vnd.jupyter.widget-view+json"
WAITING = """
import sys, threading
from llmkernel.display.live import LiveOutput
from llmkernel.synthesis.events import PromptBuilt
with LiveOutput("slow") as live:
    live(PromptBuilt(1, 1, "nobody", 0))
    threading.Event().wait(60)
"""


class FrontEnd:
    """Sends what JupyterLab sends, and keeps what it is sent."""

    def __init__(self, session: Session) -> None:
        self.client = session.client
        self.messages: list[dict[str, Any]] = []

    def send(
        self,
        kind: str,
        content: dict[str, Any],
        *,
        channel: str = "shell",
        subshell: str = "",
        **metadata: Any,
    ) -> str:
        message = self.client.session.msg(kind, content, metadata=metadata)
        if subshell:
            message["header"]["subshell_id"] = subshell
        getattr(self.client, f"{channel}_channel").send(message)
        return str(message["header"]["msg_id"])

    def run(self, code: str, **metadata: Any) -> str:
        content = {
            "code": code,
            "silent": False,
            "store_history": True,
            "user_expressions": {},
            "allow_stdin": False,
        }
        return self.send("execute_request", content, **metadata)

    def until(self, kind: str, key: str = "") -> dict[str, Any]:
        """Return the content of the next message of a kind, with `key` among its data."""
        end = time.monotonic() + TIMEOUT
        while time.monotonic() < end:
            try:
                message = self.client.get_iopub_msg(timeout=1)
            except queue.Empty:
                continue
            self.messages.append(message)
            content = message["content"]
            if message["msg_type"] == kind and (not key or key in content["data"]):
                return dict(content)
        raise AssertionError(f"no {kind} came")

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [m["content"] for m in self.messages if m["msg_type"] == kind]

    def reply(self, kind: str, msg_id: str, channel: str = "shell") -> dict[str, Any]:
        while True:
            message = getattr(self.client, f"get_{channel}_msg")(timeout=TIMEOUT)
            if message["parent_header"].get("msg_id") == msg_id and message["msg_type"] == kind:
                return dict(message["content"])


def test_a_kernel_imports_widgets_when_it_shows_some_and_hears_a_click_while_a_cell_runs(session):
    front_end = FrontEnd(session)
    front_end.send("comm_open", {"comm_id": "hello", "target_name": "jupyter.widget.control", "data": {}})
    assert front_end.until("comm_close")["comm_id"] == "hello"
    assert session.value("'ipywidgets' in __import__('sys').modules") is False

    cell = front_end.run(WAITING, cellId="cell-1")
    shown = front_end.until("display_data", VIEW_MIME)
    opened = {c["comm_id"]: c["data"]["state"] for c in front_end.of("comm_open")}
    button = next(i for i, state in opened.items() if state.get("_model_name") == "ButtonModel")
    assert shown["data"][VIEW_MIME]["model_id"] in opened
    assert "working" in shown["data"]["text/plain"]

    made = front_end.send("create_subshell_request", {}, channel="control")
    subshell = front_end.reply("create_subshell_reply", made, "control")["subshell_id"]
    click = {"comm_id": button, "data": {"method": "custom", "content": {"event": "click"}}}
    front_end.send("comm_msg", click, subshell=subshell)
    assert front_end.reply("execute_reply", cell)["ename"] == "KeyboardInterrupt"

    front_end.until("error")
    last = front_end.of("update_display_data")[-1]
    assert last["transient"] == shown["transient"]
    assert "interrupted" in last["data"]["text/plain"]
    assert VIEW_MIME not in last["data"]
    assert {c["comm_id"] for c in front_end.of("comm_close")} >= set(opened)
    assert session.run("print(1)").text == "1\n"


def test_a_program_that_runs_a_notebook_gets_no_widgets(session):
    front_end = FrontEnd(session)
    front_end.run(WAITING.replace("threading.Event().wait(60)", "pass"))
    shown = front_end.until("display_data")

    assert VIEW_MIME not in shown["data"]
    assert "working" in shown["data"]["text/plain"]
    front_end.until("status")


@pytest.fixture
def plain(jupyter, tmp_path):
    """A page that was connected to ipykernel's own kernel before the extension came."""
    with Session.start("python3", cwd=tmp_path) as session:
        yield FrontEnd(session)


def load(page: FrontEnd) -> dict[str, dict[str, Any]]:
    """Load the extension in a cell; return the state of each widget that the page was sent, by comm."""
    cell = page.run("%load_ext llmkernel", cellId="cell-1")
    assert page.reply("execute_reply", cell)["status"] == "ok"
    while len(page.of("comm_open")) < 3:
        page.until("comm_open")
    return {c["comm_id"]: c["data"]["state"] for c in page.of("comm_open")}


def shown_by(page: FrontEnd) -> dict[str, Any]:
    page.run(WAITING.replace("threading.Event().wait(60)", "pass"), cellId="cell-2")
    return page.until("display_data")["data"]


def test_a_page_that_was_there_before_the_extension_is_asked_for_its_widgets(plain):
    asked = load(plain)
    link = next(state for state in asked.values() if state["_model_name"] == "DirectionalLinkModel")
    source, target = (link[end][0].removeprefix("IPY_MODEL_") for end in ("source", "target"))
    # What a link of widgets does: it carries the source's value over to the target.
    width = asked[source]["width"]
    update = {"method": "update", "state": {"width": width}, "buffer_paths": []}
    plain.send("comm_msg", {"comm_id": target, "data": update})

    assert VIEW_MIME in shown_by(plain)
    assert {c["comm_id"] for c in plain.of("comm_close")} >= set(asked)


def test_a_page_without_widgets_keeps_the_plain_output(plain):
    for comm in load(plain):
        plain.send("comm_close", {"comm_id": comm, "data": {}})

    assert VIEW_MIME not in shown_by(plain)
