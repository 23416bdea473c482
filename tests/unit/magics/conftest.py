"""An IPython shell with the extension loaded, and a stand-in for the synthesis loop below the magic."""

from __future__ import annotations

import sys
import types

import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from llmkernel.display import live
from llmkernel.display.surface import Surface
from llmkernel.evaluation.report import Report
from llmkernel.providers.base import Message, Reply, Request
from llmkernel.records.record import Record, RecordedProblem, source_digest
from llmkernel.records.store import RecordStore
from llmkernel.synthesis.events import Accepted, Attempt, AttemptFinished, PromptBuilt

SOURCE = "//! f(x: float32[N]) -> y: float32[N]\n__global__ void f() {}\n"
REPORT = Report(
    "passed", "Right on every workload.", name="softmax_cuda", signature="f(x: float32[N]) -> y: float32[N]"
)
ATTEMPT = Attempt(1, "the prompt", Reply(SOURCE, "end", "entry"), SOURCE, REPORT)


def make_shell(config: Config | None = None) -> InteractiveShell:
    config = config or Config()
    config.HistoryManager.enabled = False
    return InteractiveShell(config=config)


@pytest.fixture(scope="module", autouse=True)
def ipython_directory(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IPYTHONDIR", str(tmp_path_factory.mktemp("ipython")))
        yield


@pytest.fixture
def bare_shell():
    return make_shell()


@pytest.fixture
def shell(bare_shell):
    bare_shell.extension_manager.load_extension("llmkernel")
    return bare_shell


class SynthesisRecorder:
    """Stands where the synthesis loop is: keeps what the magic hands over, and plays events back."""

    def __init__(self):
        self.calls, self.previews = [], []
        self.events = [PromptBuilt(1, 4, "library", 0), AttemptFinished(ATTEMPT), Accepted(REPORT, "library")]
        self.result = types.SimpleNamespace(report=REPORT, source=SOURCE, record=None)

    def synthesize(self, reference, intent, **options):
        self.calls.append((reference, intent, options))
        for event in self.events:
            options["on_event"](event)
        if isinstance(self.result, BaseException):
            raise self.result
        return self.result

    def preview(self, reference, intent, **options):
        self.previews.append((reference, intent, options))
        return Request("the system part", (Message("user", f"the prompt about {intent}"),))


class RecordingSurface(Surface):
    """A live surface that keeps what is shown on it."""

    is_live = True

    def __init__(self):
        self.lines, self.updates, self.closed = [], [], []

    def line(self, text):
        self.lines.append(text)

    def update(self, bundle):
        self.updates.append(bundle)

    def close(self, bundle):
        self.closed.append(bundle)


@pytest.fixture
def synthesis(monkeypatch):
    recorder = SynthesisRecorder()
    loop = types.ModuleType("llmkernel.synthesis.synthesize")
    loop.synthesize, loop.preview = recorder.synthesize, recorder.preview
    monkeypatch.setitem(sys.modules, loop.__name__, loop)
    return recorder


def save_record(directory, name, source=SOURCE, created="2026-04-12T10:15:00Z"):
    """Keep a record in `directory`, as an accepted kernel does."""
    problem = RecordedProblem("fast", "def f(x): ...", "0" * 64, str(REPORT.signature), (), 1)
    record = Record(
        name, problem, source_digest(source), created, report=REPORT.to_dict(), provider="claude", model="m"
    )
    return RecordStore(directory).save(record, source)


@pytest.fixture
def surface(monkeypatch):
    recording = RecordingSurface()
    recording.quiet = []
    monkeypatch.setattr(
        live, "choose_surface", lambda *, is_quiet, **_: recording.quiet.append(is_quiet) or recording
    )
    return recording
