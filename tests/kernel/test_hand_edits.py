"""Kernels that a person writes and changes by hand, in a real Jupyter kernel: cells, payloads, and what is shown."""

from __future__ import annotations

import os

import pytest

from tests.wire.scripts import reply

from .session import Session
from .test_ask import KERNEL, MAKE, SETUP, below

FASTER = KERNEL.replace("256", "128")
WRONG = KERNEL.replace("* factor;", "+ factor;")
LINE = MAKE.split("\n", 1)[0]


@pytest.fixture(scope="module")
def running(jupyter, tmp_path_factory):
    """A kernel in which nobody can be asked; the tests of a module follow each other in it."""
    with Session.start("llm-cuda", cwd=tmp_path_factory.mktemp("by_hand")) as running:
        assert not running.run(SETUP).error
        assert not running.run(MAKE).error
        yield running


def report_of(cell):
    """The report that stands below a cell when it has ended."""
    return cell.of("update_display_data")[-1]["data"]["text/plain"]


def shown(session, line):
    cell = session.run(line)
    assert not cell.error, cell.error
    return cell.text


def test_a_report_names_the_command_that_opens_its_cell_below(running):
    assert "%kernels edit scaled_cuda" in report_of(running.run(MAKE))
    cell = running.run("%kernels edit scaled_cuda")

    assert below(cell) == [MAKE.rstrip()]
    assert "judged against scaled" in cell.text


def test_what_was_refused_is_edited_before_what_was_accepted(running):
    refused = running.run(f"{LINE}\n{WRONG}")
    assert "wrong_value" in refused.error
    assert "%kernels edit scaled_cuda" in report_of(refused)

    assert below(running.run("%kernels edit scaled_cuda")) == [f"{LINE}\n{WRONG}".rstrip()]
    assert not running.run(f"{LINE}\n{FASTER}").error
    assert below(running.run("%kernels edit scaled_cuda")) == [f"{LINE}\n{FASTER}".rstrip()]
    assert below(running.run("%kernels edit scaled_cuda@1")) == [f"{LINE}\n{KERNEL}".rstrip()]


def test_two_versions_are_compared_and_one_is_put_back(running):
    running.run(MAKE)
    running.run(f"{LINE}\n{FASTER}")
    text = shown(running, "%kernels compare scaled_cuda scaled_cuda@1")
    assert "scaled_cuda@1" in text
    assert "median" in text
    assert "says nothing about speed on a GPU" in text
    assert "+ factor" not in shown(running, "%kernels diff scaled_cuda")

    assert running.value("'128' in scaled_cuda.source") is True
    assert "is in place again" in shown(running, "%kernels rollback scaled_cuda 1")
    # The notebook's kernel is the earlier one too, verified.
    assert running.value("('256' in scaled_cuda.source, scaled_cuda.report.outcome)") == (True, "passed")
    assert running.value("bool(np.allclose(scaled_cuda(x, factor), x * factor))") is True


def test_a_profile_without_a_gpu_says_what_the_compiler_knows(running):
    text = shown(running, "%kernels profile scaled_cuda")
    assert "registers: " in text
    assert "nothing ran on a GPU" in text


def test_without_a_reference_a_kernel_is_unverified(running):
    cell = running.run("%%cuda --device cpu\n" + KERNEL.replace("scaled_cuda(", "plain("))
    assert "? unverified" in report_of(cell)
    assert "there is no reference" in report_of(cell)
    assert "unverified" in shown(running, "plain")
    assert running.value("bool(np.allclose(plain(x, factor), x * factor))") is True
    assert "? unverified" in shown(running, "%kernels")
    assert "UnverifiedKernel" in running.run("%kernels compare scaled_cuda plain").error
    assert "unverified kernel" in running.run("%%cuda_from plain\nfast").error
    assert below(running.run("%kernels edit plain"))[0].startswith("%%cuda plain --device cpu\n//! plain(")


def test_kernels_and_their_versions_are_completed(running):
    assert {"plain", "scaled_cuda"} <= set(running.complete("%kernels edit "))
    assert "1" in running.complete("%kernels rollback scaled_cuda ")


def test_kernels_for_different_problems_are_not_compared(running):
    running.run("def shifted(x): return x + 1")
    other = """//! shifted_cuda(x: float32[M, N]) -> y: float32[M, N]
//! shift<<<ceil_div(M * N, 256), 256>>>(x, y, M * N)
__global__ void shift(const float* x, float* y, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) y[i] = x[i] + 1;
}
"""
    assert not running.run("%%cuda shifted_cuda --from shifted --device cpu\n" + other).error
    cell = running.run("%kernels compare scaled_cuda shifted_cuda")
    assert "kernels for different problems" in cell.error


def test_explain_asks_with_the_kernel_and_its_report(jupyter, wire_server, tmp_path):
    env = {"ANTHROPIC_API_KEY": "sk-ant-api03-" + "test" * 10, "ANTHROPIC_BASE_URL": wire_server.url}
    wire_server.queue(reply("One thread an element; **bound by memory**."))
    with Session.start("llm-cuda", cwd=tmp_path, env={**os.environ, **env}) as session:
        session.run(SETUP)
        session.run(MAKE)
        cell = session.run("%kernels explain scaled_cuda")

        assert not cell.error
        sent = str(wire_server.requests[-1].body["messages"])
        assert "Explain this kernel" in sent
        assert "__global__ void scale" in sent
        assert "What was not checked" in sent
        assert "bound by memory" in str(cell.messages)
