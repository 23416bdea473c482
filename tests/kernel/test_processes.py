"""Nothing outlives a kernel: neither the worker, nor a compiler, nor an endless candidate on the cpu device."""

from __future__ import annotations

import signal

import psutil
import pytest

from .session import TIMEOUT, Session
from .test_interrupt import ENDLESS, SETUP

CELL = f"%%cuda double_cuda --from double --device cpu\n{ENDLESS}"


def begin_endless(session):
    """Begin to judge an endless candidate and return every process of the kernel."""
    session.run(SETUP)
    request = session.client.execute(CELL)
    shown = ""
    while "quick" not in shown:
        message = session.client.get_iopub_msg(timeout=TIMEOUT)
        if message["parent_header"].get("msg_id") == request:
            shown = message["content"].get("data", {}).get("text/plain", "")
    kernel = psutil.Process(session.manager.provisioner.process.pid)
    found = [kernel, *kernel.children(recursive=True)]
    assert len(found) > 1
    return found


@pytest.mark.parametrize("end", ["restart", "kill"])
def test_nothing_is_left(jupyter, tmp_path, end):
    with Session.start("llm-cuda", cwd=tmp_path) as session:
        processes = begin_endless(session)
        if end == "restart":
            session.manager.restart_kernel()
        else:
            processes[0].send_signal(signal.SIGKILL)

        _, left = psutil.wait_procs(processes, timeout=30)

        # A zombie has ended; its parent, here the one of this test, has not looked yet.
        assert [p for p in left if p.is_running() and p.status() != psutil.STATUS_ZOMBIE] == []
