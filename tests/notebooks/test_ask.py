"""Questions in a notebook: real SDK clients against a local server, both protocols."""

from __future__ import annotations

import json

import pytest

from tests.wire.scripts import CUT, Script, anthropic_error, reply

from .running import data_of, run_notebook, text_of

pytestmark = pytest.mark.usefixtures("jupyter")

KEY = "test" * 10
SETUP = """\
import numpy as np
x = np.array([[1.0, float("nan"), 3.0]], dtype="float32")

def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)
"""


def environment(provider, server):
    return {
        "claude": {"ANTHROPIC_API_KEY": f"sk-ant-api03-{KEY}", "ANTHROPIC_BASE_URL": server.url},
        "codex": {"OPENAI_API_KEY": f"sk-proj-{KEY}", "OPENAI_BASE_URL": server.openai_url},
    }[provider]


def sent(server, number=-1):
    """The user's and the assistant's texts of one request, in order."""
    body = server.requests[number].body
    turns = body.get("messages") or body["input"]
    return [
        turn["content"] if isinstance(turn["content"], str) else "".join(p["text"] for p in turn["content"])
        for turn in turns
        if turn.get("role") in ("user", "assistant")
    ]


@pytest.mark.parametrize("provider", ["claude", "codex"])
def test_a_question_with_its_context_and_a_second_one(provider, wire_server, tmp_path):
    wire_server.queue(
        reply("One of the **three** values is NaN.\n\n```python\nnp.isnan(x)\n```\n", thinking="Hm."),
        reply("Yes, it's still so."),
    )
    cells = [
        SETUP,
        "%ask --context x,softmax what's wrong with {x} and $HOME: why is x nan?",
        "%%ask and now?",
        "%llm_usage",
    ]
    notebook = run_notebook(
        cells, env=environment(provider, wire_server), cwd=tmp_path, save_as="asked.ipynb"
    )

    (markdown,) = data_of(notebook.cells[1], "text/markdown")
    assert "One of the **three** values is NaN." in markdown
    assert "```python\nnp.isnan(x)\n```" in markdown
    assert "sent: the question, x, softmax" in text_of(notebook.cells[1])
    (first,) = sent(wire_server, 0)
    assert "what's wrong with {x} and $HOME: why is x nan?" in first
    assert "float32[1, 3]" in first
    assert "1 NaN" in first
    assert "return e / e.sum(axis=-1, keepdims=True)" in first
    assert sent(wire_server, 1)[0] == first
    assert "One of the **three**" in sent(wire_server, 1)[1]
    assert sent(wire_server, 1)[2].endswith("and now?")
    assert "1 earlier question" in text_of(notebook.cells[2])

    table = text_of(notebook.cells[3])
    assert "[2]" in table
    assert "[3]" in table
    assert "%ask" in table
    assert provider in table
    assert KEY not in (tmp_path / "asked.ipynb").read_text(encoding="utf-8")


def test_the_error_before_is_sent_and_its_cell_corrected(wire_server, tmp_path):
    wire_server.queue(reply("The shape.\n\n```python\nnp.ones(3) @ np.ones(3)\n```\n"), reply("It worked."))
    cells = [SETUP, "np.ones(3) @ np.ones(4)", "%ask --fix", "1 + 1", "%ask is it fine?", "%ask --reset"]
    notebook = run_notebook(cells, env=environment("claude", wire_server), cwd=tmp_path, allow_errors=True)

    (question,) = sent(wire_server, 0)
    assert "np.ones(3) @ np.ones(4)" in question
    assert "ValueError: matmul" in question
    assert "ipykernel" not in question
    shown = text_of(notebook.cells[2])
    assert "-np.ones(3) @ np.ones(4)\n+np.ones(3) @ np.ones(3)" in shown
    assert "ValueError" not in sent(wire_server, 1)[-1]
    assert "begins anew" in text_of(notebook.cells[5])


def test_offline_it_says_what_it_needs(tmp_path):
    notebook = run_notebook([SETUP, "%ask why?", "%ask --show-context why?"], cwd=tmp_path, allow_errors=True)

    assert "MissingKeyError" in text_of(notebook.cells[1])
    assert "ANTHROPIC_API_KEY" in text_of(notebook.cells[1])
    assert "Traceback" not in text_of(notebook.cells[1])
    assert "## Question\n\nwhy?" in text_of(notebook.cells[2])


def test_a_cell_with_a_key_is_never_sent(wire_server, tmp_path):
    wire_server.queue(reply("Fine."))
    key = "sk-ant-" + "a1B2" * 8
    cells = [
        f"token = '{key}'",
        "1 + 1",
        "%ask --cells 2 what do these do?",
        f"%ask why is {key} refused?",
        "undefined_name",
        f"client = dict(key='{key}')\nundefined_name",
        "%ask --fix",
    ]
    notebook = run_notebook(cells, env=environment("claude", wire_server), cwd=tmp_path, allow_errors=True)

    (question,) = sent(wire_server)
    assert "cell [1] is left out: line 1 holds what looks like an Anthropic key" in question
    assert "1 + 1" in question
    assert "This cell is not sent" in text_of(notebook.cells[3])
    assert "line 1" in text_of(notebook.cells[6])
    assert len(wire_server.requests) == 1
    assert "a1B2a1B2" not in json.dumps([text_of(c) for c in notebook.cells[2:4]])


@pytest.mark.parametrize("provider", ["claude", "codex"])
def test_what_arrived_before_a_failure_stays(provider, wire_server, tmp_path):
    wire_server.queue(
        Script(text="The first half and the second", broken=CUT, break_after=14), reply("Again.")
    )
    cells = [SETUP, "%ask why?", "%ask why?", "%llm_usage"]
    notebook = run_notebook(cells, env=environment(provider, wire_server), cwd=tmp_path, allow_errors=True)

    assert "The first half" in text_of(notebook.cells[1])
    assert "Partial answer: it ended with StreamCutError" in text_of(notebook.cells[1])
    assert notebook.cells[1].outputs[-1].ename == "StreamCutError"
    # A half of an answer is not part of the conversation.
    assert len(sent(wire_server)) == 1
    assert "1 answer broke off" in text_of(notebook.cells[3])


def test_a_refused_key_leaves_no_trace_of_it(wire_server, tmp_path):
    wire_server.queue(anthropic_error(401, "authentication_error", f"invalid x-api-key: sk-ant-api03-{KEY}"))
    notebook = run_notebook(
        [SETUP, "%ask why?"], env=environment("claude", wire_server), cwd=tmp_path, allow_errors=True
    )

    assert "AuthenticationError" in text_of(notebook.cells[1])
    assert KEY not in json.dumps(notebook)


def test_the_budget_of_the_notebook_counts_questions_and_kernels(wire_server, tmp_path):
    wire_server.queue(reply("One.", model="claude-opus-5-5"), reply("No kernel.", model="claude-opus-5-5"))
    ask = "%%cuda_from softmax --device cpu --attempts 1\nOne row a warp.\n"
    cells = [
        SETUP,
        "%ask one?",
        ask,
        "%config LLMKernel.notebook_budget_usd = 1e-6",
        ask,
        "%ask two?",
        "%llm_usage",
    ]
    notebook = run_notebook(cells, env=environment("claude", wire_server), cwd=tmp_path, allow_errors=True)

    assert "NotAcceptedError" in text_of(notebook.cells[2])
    for cell in notebook.cells[4:6]:
        assert "BudgetReachedError" in text_of(cell)
        assert "Traceback" not in text_of(cell)
    assert len(wire_server.requests) == 2
    table = text_of(notebook.cells[6]).splitlines()
    assert [line.split()[:2] for line in table[2:5]] == [
        ["[2]", "%ask"],
        ["[3]", "softmax_cuda"],
        ["all", "2"],
    ]
    assert "Budget: " in table[-1]
