"""The few figures that stand right below the verdict."""

from __future__ import annotations

import pytest

from llmkernel.display.page import Page, key_figures

from .examples import EPS, PASSED, report

DERIVED = {
    "policy": "derived",
    "reason": "Four times the reference's own error.",
    "allowed": 9.6 * EPS,
    "eps": EPS,
}


@pytest.mark.parametrize(
    ("tolerance", "shown"),
    [
        (DERIVED, "9.6 eps, from the reference’s own error"),
        (
            {**DERIVED, "has_oracle": False},
            "9.6 eps, from the reference’s own error, which does not run in float64",
        ),
        ({**DERIVED, "policy": "user", "allowed": 0.01}, "0.01 relative, the user’s own"),
        ({"policy": "a plug-in’s", "allowed": 0.5}, "0.50, a plug-in’s"),
        ({"policy": "exact", "reason": "Integers and booleans must agree exactly."}, "exact agreement"),
        ({"policy": "derived", "reason": "Nothing was compared."}, "from the reference’s own error"),
    ],
)
def test_the_tolerance_is_a_figure_and_whose_rule_it_is(tolerance, shown):
    figures = dict(key_figures(Page(report(tolerance=tolerance))))

    assert figures["Tolerance"] == shown


def test_the_policy_is_explained_once():
    figures = dict(key_figures(Page(PASSED)))

    assert PASSED.tolerance["reason"] not in figures["Tolerance"]
