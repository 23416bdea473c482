"""Kernels that a person writes and changes by hand, in a real Jupyter kernel: cells, payloads, and what is shown."""

from __future__ import annotations

import os

import pytest

from tests.wire.scripts import reply

from .session import Session
from .test_ask import KERNEL, MAKE, SETUP, below

LINE = MAKE.split("\n", 1)[0]
FASTER = f"{LINE}\n{KERNEL.replace('256', '128')}"
WRONG = f"{LINE}\n{KERNEL.replace('* factor;', '+ factor;')}"
PLAIN = "%%cuda --device cpu\n" + KERNEL.replace("scaled_cuda(", "plain(")


@pytest.fixture(scope="module")
def running(jupyter, tmp_path_factory):
    """A kernel in which nobody can be asked, and what is shared by the tests is made but once."""
    with Session.start("llm-cuda", cwd=tmp_path_factory.mktemp("by_hand")) as running:
        assert not running.run(SETUP).error
        yield running


def report_of(cell):
    """The report that stands below a cell when it has ended."""
    return cell.of("update_display_data")[-1]["data"]["text/plain"]


def shown(session, line):
    cell = session.run(line)
    assert not cell.error, cell.error
    return cell.text


def test_a_kernel_is_made_edited_compared_profiled_and_put_back(running):
    # Every report names the command that opens its source in a cell below.
    assert "%kernels edit scaled_cuda" in report_of(running.run(MAKE))
    cell = running.run("%kernels edit scaled_cuda")
    assert below(cell) == [MAKE.rstrip()]
    assert "judged against scaled" in cell.text

    # What was refused is edited before what was accepted.
    refused = running.run(WRONG)
    assert "wrong_value" in refused.error
    assert "%kernels edit scaled_cuda" in report_of(refused)
    assert below(running.run("%kernels edit scaled_cuda")) == [WRONG.rstrip()]
    assert not running.run(FASTER).error
    assert below(running.run("%kernels edit scaled_cuda")) == [FASTER.rstrip()]
    assert below(running.run("%kernels edit scaled_cuda@1")) == [MAKE.rstrip()]

    text = shown(running, "%kernels compare scaled_cuda scaled_cuda@1")
    assert "scaled_cuda@1" in text
    assert "median" in text
    assert "says nothing about speed on a GPU" in text
    assert "ceil_div(M * N, 128)" in shown(running, "%kernels diff scaled_cuda")
    text = shown(running, "%kernels profile scaled_cuda")
    assert "registers: " in text
    assert "nothing ran on a GPU" in text

    # The notebook's kernel is the earlier one too, verified.
    assert running.value("'128' in scaled_cuda.source") is True
    assert shown(running, "%kernels rollback scaled_cuda 1").startswith("scaled_cuda@1, made 20")
    assert running.value("('256' in scaled_cuda.source, scaled_cuda.report.outcome)") == (True, "passed")
    assert running.value("bool(np.allclose(scaled_cuda(x, factor), x * factor))") is True

    # A name that a verified kernel has may be taken by one without a reference, but not in silence.
    taken = running.run("%%cuda scaled_cuda --device cpu\n" + KERNEL)
    assert "takes the name of a verified kernel" in report_of(taken)
    assert shown(running, "%kernels rollback scaled_cuda 1").startswith("scaled_cuda@1, made 20")


def test_without_a_reference_a_kernel_is_unverified(running):
    cell = running.run(PLAIN)
    assert "? unverified" in report_of(cell)
    assert "there is no reference" in report_of(cell)
    assert "unverified" in shown(running, "plain")
    assert running.value("bool(np.allclose(plain(x, factor), x * factor))") is True
    assert "? unverified" in shown(running, "%kernels")
    assert "plain is unverified" in running.run("%kernels compare plain plain@1").error
    assert "plain is unverified" in shown(running, "%kernels profile plain")
    assert "unverified kernel" in running.run("%%cuda_from plain\nfast").error
    assert below(running.run("%kernels edit plain"))[0].startswith("%%cuda plain --device cpu\n//! plain(")
    assert "plain" in running.complete("%kernels edit ")


def test_explain_asks_with_the_kernel_and_its_report(jupyter, wire_server, tmp_path):
    env = {"ANTHROPIC_API_KEY": "sk-ant-api03-" + "test" * 10, "ANTHROPIC_BASE_URL": wire_server.url}
    wire_server.queue(reply("One thread an element; **bound by memory**."))
    with Session.start("llm-cuda", cwd=tmp_path, env={**os.environ, **env}) as session:
        session.run(SETUP)
        session.run(PLAIN)
        cell = session.run("%kernels explain plain")

        assert not cell.error
        sent = str(wire_server.requests[-1].body["messages"])
        assert "Explain this kernel" in sent
        assert "__global__ void scale" in sent
        assert "nothing says that the results are right" in sent.replace("\\n", " ")
        assert "bound by memory" in str(cell.messages)
