"""What the magic hands to synthesis, and what it does with what comes back."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from llmkernel.display.bundle import RECORD_MIME
from llmkernel.errors import NotAcceptedError, UsageError
from llmkernel.synthesis.events import Accepted

from .conftest import REPORT


def softmax(x, axis=-1):
    return x


@pytest.fixture
def run(shell):
    shell.push({"softmax": softmax, "x": np.ones((3, 5), "float32"), "np": np})

    def run_cell(cell):
        result = shell.run_cell(cell, silent=False)
        return result.error_in_exec or result.error_before_exec

    return run_cell


def test_everything_is_handed_over_and_the_kernel_assigned(run, shell, synthesis):
    error = run(
        "%%cuda_from softmax --attempts 2 --device cpu --shapes M=1,N=7 --baseline np.exp --name fast\n"
        "One {row}.\n"
    )

    assert error is None
    ((reference, intent, options),) = synthesis.calls
    assert (reference, intent) == (softmax, "One {row}.\n")
    assert list(options["inputs"]) == ["x"]
    assert options["inputs"]["x"] is shell.user_ns["x"]
    assert (options["attempts"], options["device"], options["name"]) == (2, "cpu", "fast")
    assert (options["shapes"], options["baselines"]) == (({"M": 1, "N": 7},), {"np.exp": np.exp})
    assert (options["replay"], options["provider"], options["tolerance"]) == ("auto", None, None)
    assert options["records_dir"] == Path(shell.starting_dir) / "kernels"
    assert shell.user_ns["fast"] is synthesis.result


def test_events_and_the_report_are_shown(run, synthesis, surface):
    run("%%cuda_from softmax\nx\n")

    assert surface.quiet == [False]
    assert surface.updates
    (report,) = surface.closed
    assert "Right on every workload." in report["text/plain"]
    assert "__global__" in report["text/html"]
    assert RECORD_MIME not in report


def test_the_record_rides_in_the_output(run, synthesis, surface):
    synthesis.result.record = SimpleNamespace(
        to_output=lambda source: {"source": source}, provider="claude", model="claude-of-then"
    )
    synthesis.events = [Accepted(REPORT, "replayed")]
    run("%%cuda_from softmax --quiet\nx\n")

    assert surface.quiet == [True]
    assert surface.closed[0][RECORD_MIME] == {"source": synthesis.result.source}
    assert "claude-of-then" in surface.closed[0]["text/plain"]


def test_records_stand_beside_the_notebook(run, shell, synthesis, tmp_path):
    (tmp_path / "a.ipynb").touch()
    shell.user_ns["__session__"] = str(tmp_path / "a.ipynb")
    shell.run_line_magic("config", "LLMKernel.records_dir = 'kept/here'")
    run("%%cuda_from softmax\nx\n")

    options = synthesis.calls[0][2]
    assert options["records_dir"] == tmp_path / "kept" / "here"
    assert options["notebook"] == tmp_path / "a.ipynb"


def test_the_configuration_goes_to_the_provider(run, shell, synthesis):
    shell.run_line_magic("config", "LLMKernel.budget_usd = 0.5")
    run("%%cuda_from softmax\nx\n")

    options = synthesis.calls[0][2]
    assert options["config"].budget_usd == options["budget_usd"] == 0.5


def test_the_options_are_those_of_synthesize(run, synthesis, monkeypatch):
    run("%%cuda_from softmax\nx\n")
    monkeypatch.undo()
    from inspect import signature

    from llmkernel.synthesis.synthesize import preview, synthesize

    (reference, intent, options) = synthesis.calls[0]
    signature(synthesize).bind(reference, intent, **options)
    signature(preview).bind(reference, intent, **options)


@pytest.mark.parametrize(
    "failure", [NotAcceptedError("No candidate passed."), KeyboardInterrupt(), RuntimeError("bug")]
)
def test_a_failure_is_shown_and_raised_and_nothing_is_assigned(run, shell, synthesis, surface, failure):
    synthesis.result = failure
    synthesis.events = synthesis.events[:2]
    shell.push({"softmax_cuda": "the one before"})

    assert run("%%cuda_from softmax\nx\n") is failure
    assert len(surface.closed) == 1
    assert shell.user_ns["softmax_cuda"] == "the one before"


def test_a_readable_error_has_no_frames(run, synthesis, capsys):
    synthesis.result = NotAcceptedError("No candidate passed.", next_step="Give it more attempts.")
    run("%%cuda_from softmax\nx\n")

    shown = capsys.readouterr()
    assert "NotAcceptedError: No candidate passed." in shown.out + shown.err
    assert "Traceback" not in shown.out + shown.err


@pytest.mark.parametrize(
    "cell", ["%%cuda_from softmax", "%%cuda_from softmax\n \t\n", "%cuda_from softmax", "%cuda_from"]
)
def test_without_an_intent_nobody_is_asked(run, synthesis, surface, cell):
    error = run(cell)

    assert isinstance(error, UsageError)
    missing = "two percent signs" if cell.startswith("%c") else "does not say what the kernel should do"
    assert missing in error.what
    assert error.rule.startswith("usage: %%cuda_from REFERENCE")
    assert not synthesis.calls
    assert not surface.updates + surface.closed


@pytest.mark.parametrize(
    "cell", ["%%cuda fast --from softmax", "%%cuda fast --from softmax\n\n", "%cuda fast"]
)
def test_cuda_without_a_body_says_how_it_is_used(run, cell):
    error = run(cell)

    assert isinstance(error, UsageError)
    assert ("two percent signs" if cell.startswith("%c") else "no source") in error.what
    assert error.rule.startswith("usage: %%cuda [NAME] [--from REFERENCE]")


def test_show_prompt_sends_and_assigns_nothing(run, shell, synthesis, capsys):
    assert run("%%cuda_from softmax --show-prompt\nOne row a block.\n") is None

    text = capsys.readouterr().out
    assert text.startswith("library · offline: nothing would be sent")
    assert "the system part" in text
    assert "the prompt about One row a block." in text
    assert not synthesis.calls
    assert "softmax_cuda" not in shell.user_ns
    assert "on_event" not in synthesis.previews[0][2]


@pytest.mark.parametrize("name", ["softmax", "x", "np"])
def test_the_kernel_may_not_replace_what_the_cell_reads(run, synthesis, name):
    error = run(f"%%cuda_from softmax --baseline np.exp --name {name}\nx\n")

    assert isinstance(error, UsageError)
    assert not synthesis.calls


def test_the_line_is_not_expanded(run, shell, synthesis):
    shell.push({"which": "softmax"})

    assert isinstance(run("%%cuda_from {which}\nx\n"), UsageError)
    assert not synthesis.calls


def test_inside_another_magic(run, shell, synthesis):
    assert run("%%time\n%%cuda_from softmax\nx\n") is None
    assert shell.user_ns["softmax_cuda"] is synthesis.result
