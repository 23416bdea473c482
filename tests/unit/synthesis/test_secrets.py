"""A key that the reference, the intent or a reply holds: where it does not get to."""

from __future__ import annotations

import base64
import json

import numpy as np
import pytest

import llmkernel
from llmkernel.display.bundle import report_bundle
from llmkernel.records.store import RecordStore
from llmkernel.synthesis import synthesize as module
from tests.unit.synthesis.scripted import ScriptedProvider, reply

X = np.ones(8, np.float32)
# No shape gives it away: it is known by the name of its variable only.
VALUE = "zqX9vT4mK2pL8wR7" * 4
ENCODED = base64.b64encode(VALUE.encode()).decode()
PIECES = [VALUE[i : i + 16] for i in range(len(VALUE) - 16)] + [ENCODED[i : i + 20] for i in range(60)]
TOKEN = VALUE


def twice(x, token=TOKEN, where={"token": TOKEN}):  # noqa: B006
    del where, token
    return 2 * x


KERNEL = """\
//! twice_cuda(x: float32[N]) -> y: float32[N]
//! twice<<<ceil_div(N, 256), 256>>>(x, y, N)
__global__ void twice(const float* x, float* y, int N)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N) y[i] = 2 * x[i];
}
"""


@pytest.fixture
def ask(monkeypatch, tmp_path):
    monkeypatch.setenv("MY_SERVICE_TOKEN", VALUE)
    monkeypatch.setattr(module, "_keep_in_library", lambda *_: None)

    def ask(*replies, intent):
        provider = ScriptedProvider([reply(text) for text in replies])
        monkeypatch.setattr(module, "get_provider", lambda *_, **__: provider)
        made = llmkernel.synthesize(twice, intent, inputs=[X], device="cpu", records_dir=tmp_path)
        return made, json.dumps([[m.text for m in r.messages] for r in provider.requests])

    return ask


def test_it_is_neither_sent_nor_shown_nor_saved_and_the_record_is_found_again(ask, tmp_path):
    intent = f"Double it. Once {VALUE}, once {ENCODED}, once '{VALUE[:20]}'\n  '{VALUE[20:]}'."

    kernel, sent = ask(KERNEL, intent=intent)
    again, sent_again = ask(intent=intent)

    assert sent_again == "[]"
    assert again.source == kernel.source == KERNEL
    shown = json.dumps(report_bundle(kernel.report, source=kernel.source), default=str) + repr(kernel)
    saved = "".join(p.read_text("utf-8") for p in tmp_path.rglob("*") if p.is_file())
    assert "[redacted]" in sent
    assert "[redacted]" in saved
    for text in (sent, shown, saved):
        assert not [piece for piece in PIECES if piece in text]


def test_a_kernel_that_holds_it_is_not_kept(ask, tmp_path):
    kernel, _ = ask(KERNEL.replace("2 * x[i];", f"2 * x[i];  // {VALUE}"), intent="Double it.")

    assert kernel.record is None
    (warning,) = [w for w in kernel.report.warnings if "not saved" in w]
    assert "line 6" in warning
    assert "$MY_SERVICE_TOKEN" in warning
    assert not RecordStore(tmp_path).list()
    assert np.array_equal(kernel(X), 2 * X)
