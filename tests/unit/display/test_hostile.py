"""Text from outside never becomes markup, terminal codes or a flood."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llmkernel.display.bundle import report_bundle
from llmkernel.display.kernel import repr_html_for_kernel
from llmkernel.display.live_state import LiveState
from llmkernel.display.live_view import live_bundle
from llmkernel.display.markdown import code_span, escape_markdown
from llmkernel.evaluation.report import OUTCOMES, CheckResult, Measurement, Report, Timing
from llmkernel.providers.base import Reply
from llmkernel.synthesis.events import (
    Attempt,
    AttemptFinished,
    CheckFinished,
    GaveUp,
    PromptBuilt,
    StageStarted,
    TextReceived,
    ThinkingSeen,
    WaitingSeen,
)
from tests.unit.display import examples as ex
from tests.unit.display.html_check import check_html

EVIL = (
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '" onmouseover="alert(1)',
    "</style><style>*{display:none}",
    "</code></pre></details>",
    "<!-- --><![CDATA[",
    "javascript:alert(1)",
    "[x](javascript:alert(1)) ![i](http://evil.example/i.png)",
    "\x1b[31mred\x1b[0m\x1b]8;;http://evil.example\x07link\x1b]8;;\x07",
    "int a\u202e;b\u2066 = 0\u200b; \ufeff",
    "a|b\n| c | d |\r\n~~~\n```\n# head",
    "\x00\x07\x9b31m\ud800",
    "$x$ \\(y\\) {{z}} @someone #1",
)
evil = (
    st.sampled_from(EVIL)
    | st.text(max_size=60)
    | st.builds("".join, st.lists(st.sampled_from(EVIL), max_size=3))
)
number = st.floats(allow_nan=True, allow_infinity=True) | st.integers(-(10**12), 10**12)
value = st.recursive(
    st.none() | st.booleans() | number | evil,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(evil, inner, max_size=3),
    max_leaves=6,
)
facts = st.dictionaries(evil, value, max_size=4)
checks = st.builds(
    CheckResult,
    evil,
    st.sampled_from(["passed", "failed", "warning", "not_applicable", "not_run"]),
    evil,
    facts,
)
positive = st.floats(1e-6, 1e6)
measurements = st.builds(
    Measurement,
    evil,
    positive,
    positive,
    positive,
    st.integers(0, 1000),
    st.none() | positive,
    positive,
    positive,
    evil,
)
timings = st.builds(
    Timing,
    st.booleans(),
    measurements,
    st.lists(measurements, max_size=2).map(tuple),
    evil,
    speed_of_light_ms=st.none() | positive,
    is_suspect=st.booleans(),
    claim=evil,
    workload=evil,
    device=facts,
)
workload = st.fixed_dictionaries(
    {}, optional={"sizes": value, "family": value, "error": value, "allowed": value, "outcome": value}
)
diagnostic = st.fixed_dictionaries(
    {}, optional={"severity": value, "line": value, "column": value, "message": value}
)
compiled = st.fixed_dictionaries(
    {},
    optional={
        "seconds": value,
        "arch": value,
        "options": st.lists(evil, max_size=2),
        "diagnostics": st.lists(diagnostic, max_size=2),
        "kernels": st.dictionaries(evil, facts, max_size=2),
        "log": evil,
    },
)


@st.composite
def reports(draw) -> Report:
    outcome = draw(st.sampled_from(OUTCOMES))
    return Report(
        outcome,
        draw(evil),
        name=draw(evil),
        signature=draw(evil),
        device=draw(facts),
        level=draw(st.sampled_from(["quick", "full"])),
        is_verified=outcome == "passed" or (outcome != "unverified" and draw(st.booleans())),
        checks=tuple(draw(st.lists(checks, max_size=2))),
        workloads=tuple(draw(st.lists(workload, max_size=2))),
        tolerance=draw(facts | st.fixed_dictionaries({"policy": evil, "reason": evil})),
        compile=draw(compiled),
        fault=draw(
            facts | st.fixed_dictionaries({"kind": evil, "message": evil, "kernel": evil, "details": facts})
        ),
        feedback=draw(evil),
        not_checked=tuple(draw(st.lists(evil, max_size=2))),
        warnings=tuple(draw(st.lists(evil, max_size=2))),
        timing=draw(st.none() | timings) if outcome == "passed" else None,
        seconds=draw(st.dictionaries(evil, positive, max_size=2)),
    )


attempts = st.lists(
    st.builds(
        Attempt,
        st.integers(1, 9),
        evil,
        st.none() | st.builds(Reply, evil, st.sampled_from(["end", "max_tokens", "refusal"]), evil),
        st.none() | evil,
        st.none() | reports(),
    ),
    max_size=2,
)


def assert_harmless(bundle) -> None:
    check_html(bundle["text/html"])
    for text in bundle.values():
        assert "\x1b" not in text
        assert not re.search("[\u202a-\u202e\u2066-\u2069\u200b\ufeff\ud800-\udfff]", text)
    json.dumps(bundle).encode()


def outside_code(markdown: str) -> str:
    """Return Markdown without fenced blocks, code spans and escaped characters, as CommonMark 0.31 reads it."""
    kept, fence = [], ""
    for line in markdown.split("\n"):
        opened = re.match(r"`{3,}", line)
        if fence:
            fence = "" if line == fence else fence
        elif opened:
            fence = opened.group()
        else:
            kept.append(line)
    text, out, place = "\n".join(kept), [], 0
    while place < len(text):
        run = re.compile(r"`+").match(text, place)
        if text[place] == "\\":
            place += 2
        elif run:
            end = re.compile(rf"(?<!`){run.group()}(?!`)").search(text, run.end())
            assert end, f"a code span stays open: {text[place : place + 80]!r}"
            assert "\n" not in text[place : end.end()]
            place = end.end()
        else:
            out.append(text[place])
            place += 1
    return "".join(out)


@settings(max_examples=35, deadline=None)
@given(reports(), st.none() | evil, attempts, evil, evil)
def test_nothing_in_a_report_becomes_markup(report, source, rounds, provider, origin):
    bundle = report_bundle(
        report, source=source, attempts=rounds, provider=provider, model=provider, origin=origin
    )

    assert_harmless(bundle)
    markdown = outside_code(bundle["text/markdown"])
    assert not set(re.findall(r"<\s*(/?\w*)", markdown)) - {
        "details",
        "/details",
        "summary",
        "/summary",
        "br",
    }
    assert "](" not in markdown
    assert "$" not in markdown


@settings(max_examples=40, deadline=None)
@given(evil, evil, evil)
def test_nothing_in_a_kernel_becomes_markup(name, signature, source):
    check_html(
        repr_html_for_kernel(name=name, signature=signature, report=ex.PASSED, source=source, provider=name)
    )


events = st.lists(
    st.builds(PromptBuilt, st.integers(0, 5), st.integers(0, 5), evil, st.integers(0, 10**6))
    | st.builds(ThinkingSeen, evil)
    | st.builds(TextReceived, evil)
    | st.builds(WaitingSeen, st.floats(0, 1000), evil)
    | st.builds(StageStarted, evil, evil)
    | st.builds(CheckFinished, checks)
    | st.builds(AttemptFinished, st.builds(Attempt, st.integers(1, 9), evil, report=st.none() | reports()))
    | st.builds(GaveUp, evil),
    max_size=8,
)


@settings(max_examples=35, deadline=None)
@given(events, evil)
def test_nothing_while_it_runs_becomes_markup(happened, name):
    state = LiveState(0.0, name)
    for now, event in enumerate(happened, 1):
        assert "\n" not in state.apply(event, float(now))
        assert_harmless(live_bundle(state, float(now)))


@pytest.mark.parametrize("text", EVIL)
def test_evil_text_stays_readable_in_html(text):
    report = ex.report("rejected", headline=f"seen {text}")

    shown = "".join(check_html(report_bundle(report)["text/html"]).text)
    words = re.findall(r"[A-Za-z]{4,}", re.sub(r"\x1b\][^\x07]*\x07|\x1b\[[0-9;]*m", " ", text))
    for word in words:
        assert word in shown


def test_bidirectional_controls_are_spelled_out():
    bundle = report_bundle(ex.PASSED, source="int a\u202e;\n")

    assert "[U+202E]" in "".join(check_html(bundle["text/html"]).text)
    assert "[U+202E]" in bundle["text/markdown"]


FLOODS = {
    "log": "error: ünknown <x> & y\n" * 500_000,
    "line": "x" * 2_000_000,
    "tokens": "1+" * 200_000,
    "escapes": "&<>\"'" * 200_000,
    "codes": "\x1b[31m" * 200_000,
    "bidi": "\u202e" * 200_000,
    "lines": "\n" * 200_000,
}


@pytest.mark.parametrize("kind", FLOODS)
def test_a_flood_is_cut_and_says_where_the_rest_is(kind):
    flood = FLOODS[kind]
    report = ex.report(
        "not_compiled",
        headline=flood,
        name=flood,
        signature=flood,
        compile={
            "log": flood,
            "options": [flood],
            "diagnostics": [{"message": flood, "line": 1}] * 50,
            "kernels": {},
        },
        checks=tuple(
            CheckResult(flood, "failed", flood, {f"k{i}": flood for i in range(40)}) for _ in range(80)
        ),
        workloads=tuple({"sizes": {flood: flood}, "family": flood, "outcome": flood} for _ in range(100)),
        not_checked=(flood,) * 100,
        warnings=(flood,) * 40,
        tolerance={"policy": flood, "reason": flood},
        fault={"kind": flood, "message": flood, "details": {"x": flood}},
        feedback=flood,
    )
    rounds = [Attempt(i, flood, Reply(flood, "end", flood), flood, report) for i in range(1, 30)]

    bundle = report_bundle(report, source=flood, attempts=rounds, provider=flood, model=flood)
    check_html(bundle["text/html"])
    sizes = {kind: len(text.encode()) for kind, text in bundle.items()}
    assert sizes["text/html"] < 400_000
    assert sizes["text/markdown"] < 400_000
    assert sizes["text/plain"] < 200_000
    assert bundle["text/html"].count("of the record") > 1


def test_a_large_source_keeps_its_beginning():
    source = "".join(f"__device__ int f{i}() {{ return {i}; }}\n" for i in range(20_000))

    text = "".join(check_html(report_bundle(ex.PASSED, source=source)["text/html"]).text)
    assert "int f0()" in text
    assert "full text in kernel.cu of the record" in text


@given(evil)
def test_a_markdown_cell_stays_one_cell(text):
    cell = escape_markdown(text)

    assert "\n" not in cell
    assert not re.search(r"(?<!\\)(?:\\\\)*\|", cell)
    assert "<" not in cell


@given(evil)
def test_a_code_span_ends_where_it_should(text):
    span = code_span(text)
    if not span:
        return

    fence = re.match(r"`+", span).group()
    assert span.endswith(fence)
    assert not re.search(rf"(?<!`)`{{{len(fence)}}}(?!`)", span[len(fence) : -len(fence)])
