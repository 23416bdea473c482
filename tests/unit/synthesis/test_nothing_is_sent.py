"""What is found out before a token is spent, and what a reply can never do."""

from __future__ import annotations

import numpy as np
import pytest

import llmkernel
from llmkernel.devices.base import available_devices
from llmkernel.errors import (
    DeviceUnavailableError,
    LLMKernelError,
    NotAcceptedError,
    RecordError,
    ReferenceProblem,
)
from llmkernel.providers.base import Reply
from llmkernel.synthesis import synthesize as module
from tests.unit.synthesis.scripted import ScriptedProvider

X = np.ones(8, np.float32)


def twice(x):
    return 2 * x


@pytest.fixture
def provider(monkeypatch):
    scripted = ScriptedProvider([])
    monkeypatch.setattr(module, "get_provider", lambda *_, **__: scripted)
    return scripted


def test_without_a_gpu_the_device_is_refused_before_anything_is_sent(provider, monkeypatch):
    monkeypatch.setattr(
        available_devices()["cuda"], "unavailable_reason", classmethod(lambda cls: "No GPU here")
    )
    with pytest.raises(DeviceUnavailableError, match="No GPU here") as caught:
        llmkernel.synthesize(twice, "double it", inputs=[X], device="cuda")
    assert "llmkernel doctor" in str(caught.value)
    assert provider.requests == []


@pytest.mark.parametrize(
    "reference",
    [
        lambda x: x * np.random.default_rng().random(x.shape).astype(np.float32),
        lambda x: x[x > 0],
        lambda x: {"y": x},
        lambda x: 1 / 0,
    ],
    ids=["random", "shape by value", "dictionary", "raises"],
)
def test_a_reference_that_is_no_measure_is_refused_before_anything_is_sent(provider, reference):
    with pytest.raises(ReferenceProblem):
        llmkernel.synthesize(
            reference, "do it", inputs=[np.linspace(-1, 1, 8, dtype=np.float32)], device="cpu"
        )
    assert provider.requests == []


def test_replay_only_sends_nothing(provider, tmp_path):
    with pytest.raises(RecordError, match="no record"):
        llmkernel.synthesize(
            twice, "double it", inputs=[X], device="cpu", replay="only", records_dir=tmp_path
        )
    assert provider.requests == []


@pytest.mark.parametrize(
    "options",
    [{"timeout": -1}, {"tolerance": "wide"}, {"arch": "../../etc"}, {"attempts": 0}, {"intent": ""}],
)
def test_options_that_cannot_be_used_send_nothing(provider, options):
    intent = options.pop("intent", "double it")
    with pytest.raises(LLMKernelError):
        llmkernel.synthesize(twice, intent, inputs=[X], device="cpu", **options)
    assert provider.requests == []


@pytest.mark.parametrize(
    "text",
    [
        "```python\nimport pathlib\npathlib.Path({path!r}).touch()\n```",
        '```cuda\n#include <cstdio>\nint main() {{ fopen({path!r}, "w"); }}\n__global__ void f() {{}}\n```',
        (
            "```cuda\n//! f() -> y: float32\n//! f<<<1, 1>>>(__import__('pathlib').Path({path!r}).touch())\n"
            "__global__ void f(float* y) {{}}\n```"
        ),
        "```bash\ntouch {path}\n```",
    ],
    ids=["Python", "host code", "header", "shell"],
)
def test_nothing_of_a_reply_but_device_code_is_ever_executed(provider, tmp_path, text):
    path = tmp_path / "executed"
    provider.replies = [Reply(text.format(path=str(path)), "end", "model-1")]
    with pytest.raises(NotAcceptedError) as caught:
        llmkernel.synthesize(twice, "double it", inputs=[X], device="cpu", attempts=1)
    assert caught.value.attempts[0].report.outcome == "rejected"
    assert not path.exists()
