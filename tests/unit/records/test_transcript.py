from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from llmkernel.evaluation.report import Report
from llmkernel.providers.base import Reply, Usage
from llmkernel.records.transcript import transcript_lines
from llmkernel.synthesis.events import Attempt

KEY = "sk-ant-api03-" + "a1B2" * 10


def test_every_attempt_is_one_line():
    attempts = [
        Attempt(
            1,
            "Write it.",
            Reply("```cuda\n```", "end", "m", Usage(3, output_tokens=4)),
            "x",
            Report("passed", "ok"),
        ),
        Attempt(2, "Again."),
    ]

    lines = [json.loads(line) for line in transcript_lines(attempts, system="Be exact.").splitlines()]

    assert lines[0] == {"system": "Be exact."}
    assert lines[1]["reply"]["usage"]["output_tokens"] == 4
    assert lines[1]["report"]["outcome"] == "passed"
    assert (lines[2]["number"], lines[2]["prompt"], "reply" in lines[2]) == (2, "Again.", False)
    assert transcript_lines([]) == ""


def test_secrets_are_redacted_wherever_they_are():
    reply = Reply(f"key: {KEY}", "end", "m")
    report = Report("not_compiled", "no", feedback=f"near {KEY}")

    text = transcript_lines([Attempt(1, f"use {KEY}", reply, "x", report)], system=KEY)

    assert KEY not in text
    assert text.count("[redacted]") == 4


@given(st.text(), st.text())
def test_any_text_stays_on_its_line(prompt, answer):
    text = transcript_lines([Attempt(1, prompt, Reply(answer, "end", "m"))])

    assert text.endswith("\n")
    assert text.isascii()
    assert text.count("\n") == 1
    json.loads(text)
