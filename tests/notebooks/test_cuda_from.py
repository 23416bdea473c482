"""The main path in a notebook: a reply from a local server, judged on the cpu device, replayed without a provider."""

from __future__ import annotations

import pytest
from nbclient.exceptions import CellExecutionError

from llmkernel.display.bundle import RECORD_MIME
from tests.wire.scripts import Script

from .running import data_of, make_notebook, run_notebook, text_of

pytestmark = pytest.mark.usefixtures("jupyter")

SETUP = """\
import numpy as np

def scaled(x, factor):
    return x * factor

x = np.random.default_rng(0).standard_normal((33, 70), dtype="float32")
factor = np.float32(1.5)
"""
ASK = "%%cuda_from scaled --device cpu\nOne element a thread; {braces} and $dollars stay.\n"
USE = "np.array_equal(scaled_cuda(x, factor), scaled(x, factor)), type(scaled_cuda(x, factor)).__name__"

CANDIDATE = """\
//! scaled_cuda(x: float32[M, N], factor: float32) -> y: float32[M, N]
//! scale<<<ceil_div(M * N, 256), 256>>>(x, y, factor, M * N)
__global__ void scale(const float* __restrict__ x, float* __restrict__ y, float factor, long long count)
{
    const long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
    if (i < count) y[i] = x[i] * factor;
}
"""
WRONG = CANDIDATE.replace("* factor;", "+ factor;")


def reply(source):
    return Script(text=f"Here it is.\n\n```cuda\n{source}```\n")


@pytest.fixture
def env(wire_server):
    return {"ANTHROPIC_API_KEY": "sk-ant-api03-" + "test" * 10, "ANTHROPIC_BASE_URL": wire_server.url}


def test_ask_use_replay_and_share(wire_server, env, tmp_path):
    wire_server.queue(reply(WRONG), reply(CANDIDATE))
    first = run_notebook([SETUP, ASK, USE], env=env, cwd=tmp_path, save_as="first.ipynb")

    assert text_of(first.cells[2]) == "(True, 'ndarray')"
    (bundle,) = data_of(first.cells[1], "text/html")
    assert "scale" in bundle
    assert len(wire_server.requests) == 2
    sent = str(wire_server.requests[0].body)
    assert "{braces} and $dollars stay." in sent
    (record,) = data_of(first.cells[1], RECORD_MIME)
    assert record["source"]
    kept = tmp_path / "kernels" / "scaled_cuda"
    assert {"kernel.cu", "record.json", "transcript.jsonl"} <= {p.name for p in kept.iterdir()}
    assert env["ANTHROPIC_API_KEY"] not in (tmp_path / "first.ipynb").read_text(encoding="utf-8")

    again = run_notebook([SETUP, ASK, USE], cwd=tmp_path, save_as="second.ipynb")
    assert text_of(again.cells[2]) == "(True, 'ndarray')"

    # The notebook's file alone, somewhere else, without a key.
    there = tmp_path / "there"
    there.mkdir()
    shared = there / "shared.ipynb"
    shared.write_bytes((tmp_path / "first.ipynb").read_bytes())
    only = ASK.replace("--device", "--replay only --device")
    elsewhere = run_notebook([SETUP, only, USE], cwd=there, env={"JPY_SESSION_NAME": str(shared)})

    assert text_of(elsewhere.cells[2]) == "(True, 'ndarray')"
    assert (there / "kernels" / "scaled_cuda" / "kernel.cu").is_file()
    assert len(wire_server.requests) == 2


def test_run_all_stops_at_a_kernel_that_was_not_accepted(wire_server, env, tmp_path):
    wire_server.queue(reply(WRONG))
    notebook = make_notebook([SETUP, ASK.replace("--device", "--attempts 1 --device"), "went_on = True"])
    with pytest.raises(CellExecutionError):
        run_notebook(notebook, env=env, cwd=tmp_path)

    assert "NotAcceptedError" in text_of(notebook.cells[1])
    assert "Traceback" not in text_of(notebook.cells[1])
    assert data_of(notebook.cells[1], "text/html")
    assert notebook.cells[2].execution_count is None
    assert not (tmp_path / "kernels" / "scaled_cuda" / "record.json").exists()


def test_show_prompt_sends_nothing(wire_server, env, tmp_path):
    shown = run_notebook(
        [SETUP, ASK.replace("--device", "--show-prompt --device"), "'scaled_cuda' in globals()"],
        env=env,
        cwd=tmp_path,
    )

    assert "{braces} and $dollars stay." in text_of(shown.cells[1])
    assert "return x * factor" in text_of(shown.cells[1])
    assert text_of(shown.cells[1]).startswith("claude · ")
    assert "tokens, not sent" in text_of(shown.cells[1])
    assert text_of(shown.cells[2]) == "False"
    assert not wire_server.requests


def test_without_a_record_replay_only_asks_nobody(wire_server, env, tmp_path):
    notebook = make_notebook([SETUP, ASK.replace("--device", "--replay only --device")])
    run_notebook(notebook, env=env, cwd=tmp_path, allow_errors=True)

    assert "RecordError" in text_of(notebook.cells[1])
    assert not wire_server.requests
