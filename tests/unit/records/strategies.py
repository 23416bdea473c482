"""Records, and JSON of whatever shape, for Hypothesis; and the plain record that many tests start from."""

from __future__ import annotations

from hypothesis import strategies as st

from llmkernel.candidate.domain import VerifiedArgument, VerifiedDomain
from llmkernel.evaluation.report import CheckResult, Measurement, Report, Timing
from llmkernel.records.record import Record, RecordedProblem, source_digest

SOURCE = "//! double_it(x: float32[N]) -> y: float32[N]\n__global__ void double_it() {}\n"


def make_record(
    source: str = SOURCE, *, name: str = "double_it", intent: str = "Double every element.", **changes
):
    domain = VerifiedDomain((VerifiedArgument("x", "numpy", "float32", 1),), "numpy", False, False, "cpu")
    report = Report(
        "passed",
        "Right on 12 workloads.",
        name=name,
        checks=(CheckResult("values", "passed", "12 workloads", {"worst": 0.5}),),
        timing=Timing(True, Measurement("this kernel", 1.0, 0.9, 1.1, 20)),
    )
    values = {
        "name": name,
        "problem": RecordedProblem(
            intent,
            "def double_it(x):\n    return 2 * x\n",
            "f" * 64,
            "double_it(x: float32[N]) -> y: float32[N]",
            ({"name": "x", "kind": "numpy", "dtype": "float32", "shape": [7]},),
        ),
        "candidate_digest": source_digest(source),
        "created": "2026-11-30T12:00:00+00:00",
        "environment": {"device": {"arch": "host", "num_sms": 2}, "compiler": "zig 0.14"},
        "report": report.to_dict(),
        "domain": domain.to_dict(),
        "provider": "library",
        "model": "double_it",
        "usage": {"input_tokens": 10},
        "package_version": "0.1.0",
    }
    return Record(**{**values, **changes})


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)

records = st.builds(
    lambda name, intent, environment, attempts, cost: make_record(
        name=name, intent=intent, environment=environment, attempts=attempts, cost_usd=cost
    ),
    st.text(min_size=1, max_size=30),
    st.text(max_size=60),
    st.dictionaries(st.text(max_size=8), json_values, max_size=4),
    st.integers(0, 50),
    st.none() | st.floats(0, 100),
)
