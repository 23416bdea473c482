"""Candidates that try to get out are refused for what they say, and behind that for what they compile to."""

from __future__ import annotations

import numpy as np
import pytest

from llmkernel import evaluate
from llmkernel.devices.cpu.device import CpuDevice
from llmkernel.errors import CompileError, UnsupportedFeatureError

from . import sources
from .traces import snapshot

ALL = {**sources.READS, **sources.RUNS, **sources.CALLS}
# The text breaks no static rule: the compiler, or what it made, is where these end.
NOT_COMPILED = {"incbin by pasting", "asm by pasting", "global object", "environ"}
# Harmless to the compiler: nothing of the file is read.
IGNORED = {"pragma plugin", "optimize attribute"}


@pytest.fixture
def victim(tmp_path):
    (tmp_path / "secret.h").write_text("int planted_secret_word = 5;\n")
    return tmp_path


@pytest.mark.parametrize("name", ALL)
def test_the_candidate_is_rejected(name, victim):
    before = snapshot(victim)
    source = ALL[name].replace("{path}", str(victim / "secret.h"))
    report = evaluate(source, lambda x: x.copy(), [np.ones(8, np.float32)], device="cpu")
    assert report.outcome == ("not_compiled" if name in NOT_COMPILED else "rejected"), report.headline
    assert "planted_secret" not in str(report.to_dict())
    assert snapshot(victim) == before


@pytest.mark.parametrize("name", [name for name in sources.READS if name not in IGNORED])
def test_without_the_static_rules_the_compiler_reads_nothing(name, victim):
    source = ALL[name].replace("{path}", str(victim / "secret.h"))
    with pytest.raises((CompileError, UnsupportedFeatureError)) as caught:
        CpuDevice().compile(source, ["f"])
    assert "planted_secret" not in str(vars(caught.value))
