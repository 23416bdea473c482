"""What is said to people reads well: numbers that differ look different, near misses are recognised."""

import numpy as np
import pytest

from llmkernel import evaluate
from llmkernel.candidate.expressions import parse_expression
from llmkernel.errors import HeaderError, UsageError
from llmkernel.evaluation.tools import chosen_tools

ALMOST = """//! twice(x: float64[N]) -> y: float64[N]
//! twice<<<ceil_div(N, 128), 128>>>(x, y, N)
__global__ void twice(const double* x, double* y, int N) {
    int i = blockIdx.x * 128 + threadIdx.x;
    if (i < N) y[i] = 2.0 * x[i] * (1.0 + 3e-12);
}
"""


def test_a_wrong_double_does_not_look_like_the_right_one():
    report = evaluate(ALMOST, lambda x: 2 * x, [np.linspace(0.5, 1.0, 300)], device="cpu")
    assert report.outcome in ("wrong_value", "precision_downgraded"), report.headline
    failed = next(c for c in report.checks if c.status == "failed")
    example = failed.evidence["examples"][0]
    assert example["got"] != example["expected"]


def test_dim3_is_answered_with_a_tuple():
    with pytest.raises(HeaderError, match=r"write a tuple, as in `<<<\(ceil_div\(N, 128\), M\), 128>>>`"):
        parse_expression("dim3(N, 4)")


def test_a_tool_that_is_nearly_named_is_suggested():
    with pytest.raises(UsageError, match="no check") as caught:
        chosen_tools(["memchk"])
    assert caught.value.next_step == "Did you mean memcheck?"
