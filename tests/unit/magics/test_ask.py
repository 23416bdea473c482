"""The magic in a shell of this process; the provider's SDK is real, its server a local one."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

from llmkernel.display import answer
from llmkernel.errors import LLMKernelError, UsageError
from llmkernel.providers.usage import LEDGER
from tests.wire.scripts import refusal, reply

from .conftest import RecordingSurface, save_record

KEY = "sk-ant-" + "a1B2" * 8


@pytest.fixture(autouse=True)
def ledger():
    LEDGER.reset()
    yield LEDGER
    LEDGER.reset()


class Asking:
    def __init__(self, shell, server, surface):
        self.shell, self.server, self.surface = shell, server, surface
        self.below = []

    def run(self, cell):
        return self.shell.run_cell(cell, store_history=True)

    def __call__(self, line, cell=None, answer="It is so."):
        """Ask, and return what was sent."""
        self.server.queue(reply(answer))
        if cell is None:
            self.shell.run_line_magic("ask", line)
        else:
            self.shell.run_cell_magic("ask", line, cell)
        return self.sent()

    def sent(self, number=-1):
        return [m["content"] for m in self.server.requests[number].body["messages"]]

    @property
    def shown(self):
        return self.surface.closed[-1]["text/plain"]


def text(content):
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


@pytest.fixture
def asking(shell, claude_wire, monkeypatch):
    surface = RecordingSurface()
    monkeypatch.setattr(answer, "choose_surface", lambda **_: surface)
    asking = Asking(shell, claude_wire, surface)
    monkeypatch.setattr(shell, "set_next_input", asking.below.append)
    return asking


def test_only_what_was_asked_for_is_sent(asking):
    asking.run("secret_plan = 'attack at dawn'")
    asking.run("y = 2")

    (message,) = asking("why?")

    assert text(message) == "## Question\n\nwhy?"


def test_the_context_comes_before_the_question(asking):
    asking.shell.push({"x": np.ones(3), "scale": 2.5})
    (message,) = asking("--context x,scale --model claude-opus-5-5 --effort low --max-tokens 99 what's this?")

    assert text(message).index("`x`: numpy array float64[3]") < text(message).index("`scale`: float 2.5")
    assert text(message).endswith("## Question\n\nwhat's this?")
    body = asking.server.requests[-1].body
    assert (body["model"], body["max_tokens"]) == ("claude-opus-5-5", 99)
    assert body["output_config"]["effort"] == "low"


def test_names_that_the_question_means_are_told(asking):
    asking.shell.push({"x": np.ones(3), "norm": np.linalg.norm, "n": 3})
    asking("why is x nan when norm(n) is fine?")

    assert "`--context x,norm`" in asking.shown
    asking.shell.push({"a": np.ones(3)})
    asking("is there a way?")
    assert "--context" not in asking.shown
    asking("is `a` right?")
    assert "`--context a`" in asking.shown


@pytest.mark.parametrize("name", ["nothing", "np.nothing", "broken.size"])
def test_a_name_that_is_not_there(asking, name):
    class Broken:
        @property
        def size(self):
            raise RuntimeError

    asking.shell.push({"np": np, "broken": Broken()})
    with pytest.raises(UsageError, match=name.partition(".")[0]):
        asking(f"--context {name} why?")
    assert not asking.server.requests


def test_the_last_error_is_sent_only_directly_after_it(asking):
    asking.run("a = 1")
    asking.run("a / 0")
    (message,) = asking("")
    assert "cell [2]:\n```python\na / 0\n```" in text(message)
    assert "ZeroDivisionError: division by zero" in text(message)
    assert "interactiveshell" not in text(message)

    # A question is no cell of its own, also one that fails.
    with pytest.raises(LLMKernelError):
        asking.shell.run_line_magic("ask", "--context nothing why?")
    assert "ZeroDivisionError" in text(asking("again")[-1])
    assert "ZeroDivisionError" not in text(asking("--no-error again")[-1])
    asking.run("a = 2")
    assert "ZeroDivisionError" not in text(asking("and now?")[-1])
    assert "ZeroDivisionError" in text(asking("--error and then?")[-1])


def test_without_an_error_and_without_a_question_there_is_nothing_to_ask(asking):
    for line, cell in (("", None), ("", "\n"), ("--error why?", None), ("--fix", None)):
        with pytest.raises(UsageError):
            asking(line, cell)
    assert not asking.server.requests


def test_an_earlier_error_is_let_go_with_its_frames(asking):
    class Large:
        pass

    asking.shell.push({"Large": Large, "kept": []})
    asking.run(
        "def f():\n    large = Large()\n    kept.append(__import__('weakref').ref(large))\n    1 / 0\nf()"
    )
    reference: weakref.ref = asking.shell.user_ns["kept"][0]
    asking.run("undefined")
    gc.collect()

    assert reference() is None


def test_cells_of_the_session(asking):
    asking.run("first = 1")
    asking.run("second = 2")
    asking.run("%ask --show-context hm?")
    asking.run("third = 3")

    (message,) = asking("--cells 2 what do they do?")
    assert "first" not in text(message)
    assert text(message).index("second = 2") < text(message).index("third = 3")
    assert "hm?" not in text(message)


def test_cells_from_before_the_extension(bare_shell):
    from llmkernel.magics.session import get_session

    for cell in ("early = 1", "%load_ext llmkernel", "late = 2"):
        bare_shell.run_cell(cell, store_history=True)

    assert [c.text for c in get_session(bare_shell).cells] == ["early = 1", "%load_ext llmkernel", "late = 2"]
    assert [c.number for c in get_session(bare_shell).cells] == [1, 2, 3]


def test_what_has_not_changed_is_not_sent_twice(asking):
    asking.run("def f():\n" + "    # a long cell\n" * 20 + "    1 / 0\nf()")
    asking("")
    last = text(asking("and how do I fix it?")[-1])
    assert "a long cell" not in last
    assert "As above, unchanged." in last
    assert "a long cell" in text(asking("--reset --error and how?")[-1])


def test_the_lines_of_a_cell_with_a_key_are_not_in_a_traceback(asking):
    asking.run(f"def f(x):\n    return x.private_plan\nkey = '{KEY}'")
    asking.run("f(1)")

    (message,) = asking("")
    assert "in f\n    (its cell holds a key, and is not sent)" in text(message)
    assert "private_plan" not in text(message).replace("no attribute 'private_plan'", "")
    assert "f(1)" in text(message)


def test_the_conversation_has_a_budget(asking):
    asking("one?", answer="The first. " * 200)
    assert len(asking("two?", answer="The second.")) == 3
    asking.run("%config LLMKernel.conversation_tokens = 100")
    messages = asking("three?")
    assert [text(m).rpartition("\n")[2] for m in messages] == ["two?", "The second.", "three?"]
    assert "1 earlier question (1 dropped)" in asking.shown
    asking.run("%ask --reset")
    assert len(asking("--reset four?")) == 1


def test_what_was_sent_can_be_looked_at(asking, capsys):
    asking("--cells 3 why {x} $HOME 'so?", answer="The answer.")
    asking.shell.run_line_magic("ask", "--sent")
    printed = capsys.readouterr().out

    body = asking.server.requests[-1].body
    assert text(body["messages"][0]["content"]) in printed
    assert text(body["system"]) in printed


def test_what_would_be_sent_is_what_is_sent(asking, capsys):
    asking.shell.push({"x": np.ones(3)})
    asking.shell.run_line_magic("ask", "--context x --show-context why?")
    printed = capsys.readouterr().out
    assert not asking.server.requests

    (message,) = asking("--context x why?")
    assert text(message) in printed


@pytest.mark.parametrize("where", ["line", "body"])
def test_a_question_with_a_key_is_refused(asking, where):
    with pytest.raises(UsageError, match="not sent: line") as caught:
        asking(f"why {KEY}?") if where == "line" else asking("", f"one\nwhy {KEY}?")
    assert "a1B2" not in str(caught.value)
    assert not asking.server.requests


def test_keys_are_taken_out_of_everything_else(asking):
    asking.run(f"def f():\n    '''{KEY}'''\n    raise ValueError('{KEY}')\n")
    asking.run("f()")
    asking.shell.push({"k": [KEY], "text": "x " + KEY})

    (message,) = asking("--context k,text,f --cells 2 why?")
    assert "a1B2" not in text(message)
    assert "ValueError: [redacted]" in text(message)
    assert "cell [1] is left out" in text(message)


def test_a_cell_with_a_key_is_not_sent_to_be_made_a_kernel_of(shell, synthesis):
    shell.push({"f": lambda x: x, "x": np.ones(3)})
    with pytest.raises(UsageError, match="not sent"):
        shell.run_cell_magic("cuda_from", "f", f"fast\ntoken {KEY}\n")
    assert not synthesis.calls


FIXED = "a = 1\nprint(a / 1)"


def test_a_correction_is_put_below_with_what_changes(asking):
    asking.run("a = 1\nprint(a / 0)")
    asking("--fix", answer=f"It divides by zero.\n\n```python\n{FIXED}\n```\n")

    assert asking.below == [FIXED]
    assert "```diff\n" in asking.surface.closed[-1]["text/markdown"]
    assert "-print(a / 0)\n+print(a / 1)" in asking.shown


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("I cannot.", "no corrected cell"),
        ("```python\na\n```\n```text\nb\n```\n", None),
        ("```\nprint(1)\n```", None),
        ("```python\n1 / 0\n```", "as it was"),
    ],
)
def test_answers_without_a_correction(asking, answer, why):
    asking.run("1 / 0")
    asking("--fix", answer=answer)

    assert (why in asking.shown) if why else asking.below


def test_an_answer_that_was_cut_off_is_put_nowhere(asking):
    asking.run("1 / 0")
    asking.server.queue(reply("```python\n1 / 1\n```", stop="max_tokens"))
    asking.shell.run_line_magic("ask", "--fix")

    assert asking.below == []
    assert "token limit" in asking.shown
    assert len(asking("why?")) == 1


def test_code_is_one_cell(asking):
    asking("--code how?", answer="```python\na = 1\n```\nand\n```bash\nrm\n```\n```py\nb = 2\n```\n")
    asking("--code how?", answer="```python\n%%time\nf()\n```\n")
    asking("--code how?", answer="```text\nnothing\n```\n")

    assert asking.below == ["a = 1\n\nb = 2", "%%time\nf()"]
    assert "no Python" in asking.shown


def test_a_refusal_is_an_error_and_no_part_of_the_conversation(asking):
    asking.server.queue(refusal("cyber"))
    with pytest.raises(LLMKernelError, match="declined"):
        asking.shell.run_line_magic("ask", "why?")

    assert "RefusedError" in asking.shown
    assert len(asking("why?")) == 1


def test_a_failed_kernel_is_sent_with_its_report(asking, synthesis):
    from llmkernel.errors import NotAcceptedError
    from llmkernel.evaluation.report import Report
    from llmkernel.synthesis.events import Attempt

    report = Report("wrong_value", "Wrong at N=1023.", name="f_cuda")
    attempt = Attempt(1, "", source="__global__ void f();", report=report)
    synthesis.result = NotAcceptedError("No kernel for f.", attempts=(attempt,))
    asking.shell.push({"f": lambda x: x, "x": np.ones(3)})
    asking.run("%%cuda_from f\nfast\n")

    (message,) = asking("")
    for part in (
        "%%cuda_from f",
        "NotAcceptedError: No kernel for f.",
        "__global__ void f();",
        "Wrong at N=1023.",
    ):
        assert part in text(message)


def test_a_kept_kernel_is_described_by_its_record(asking, tmp_path):
    asking.shell.run_line_magic("config", f"LLMKernel.records_dir = {str(tmp_path)!r}")
    save_record(tmp_path, "kept_cuda")

    (message,) = asking("--kernel kept_cuda what is it?")
    assert "__global__ void f() {}" in text(message)
    assert "def f(x): ..." in text(message)
    assert "Right on every workload." in text(message)
    with pytest.raises(UsageError, match="no generated kernel"):
        asking("--kernel text why?")


def test_a_server_of_ones_own_is_asked_too(asking, monkeypatch):
    asking.shell.run_line_magic("config", f"LLMKernel.base_url = {asking.server.openai_url!r}")
    asking.shell.run_line_magic("config", "LLMKernel.provider = 'openai-compatible'")
    assert "why?" in text(asking("--model local why?")[-1])

    assert asking.server.requests[-1].path == "/v1/chat/completions"
    assert asking.shown.startswith("It is so.\n\nopenai-compatible · local")


def test_offline_nothing_is_asked(shell, capsys):
    with pytest.raises(LLMKernelError, match="needs a provider") as caught:
        shell.run_line_magic("ask", "why?")
    assert "OPENAI_API_KEY" in str(caught.value)

    shell.run_line_magic("ask", "--show-context why?")
    assert "no provider is configured" in capsys.readouterr().out


def test_the_ledger_knows_cell_and_price(asking, ledger, monkeypatch):
    monkeypatch.setattr("IPython.get_ipython", lambda: asking.shell)
    asking.server.queue(reply("So.", model="claude-opus-5-5"))
    asking.run("x = 1")
    asking.run("%ask why?")

    (entry,) = ledger.entries
    assert (entry.cell, entry.purpose, entry.provider) == ("[2]", "%ask", "claude")
    assert entry.cost_usd > 0
    asking.shell.run_line_magic("config", "LLMKernel.notebook_budget_usd = 1e-6")
    with pytest.raises(LLMKernelError, match="budget"):
        asking.shell.run_line_magic("ask", "why?")
    assert len(asking.server.requests) == 1
