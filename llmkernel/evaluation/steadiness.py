"""Whether the reference gives one answer for one question: random numbers and hidden state make it no measure.

A candidate is not blamed for disagreeing with a reference that disagrees with itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from llmkernel.errors import LLMKernelError, ReferenceProblem
from llmkernel.evaluation.expected import Expected, all_results
from llmkernel.evaluation.tolerance import allowance, comparable, deviation, special_mismatch
from llmkernel.problem.arrays import HostArray, widened
from llmkernel.problem.dtypes import DTYPES, dtype_name
from llmkernel.problem.problem import HostInput, Problem
from llmkernel.problem.workloads import draw_inputs, probe_sizes

_WHAT = "The reference gives different results for the same inputs"
_RULE = "a reference returns the same result each time it is called with the same inputs"
_STEP = "Pass random numbers in as an input, or seed the generator inside the reference; keep no state between calls."


def require_steady(problem: Problem) -> None:
    """Ask the reference twice before anything is sent to a provider.

    Raises
    ------
    llmkernel.errors.ReferenceProblem
        When its two answers differ by more than rounding.
    """
    found = _difference_on_small_draw(problem)
    if found:
        raise ReferenceProblem(f"{_WHAT}.", rule=_RULE, received=found, next_step=_STEP)


def unsteadiness(problem: Problem, draw: Expected | None = None) -> str:
    """Return a sentence where the reference, asked again, answers differently; else an empty string.

    Parameters
    ----------
    problem : Problem
    draw : Expected, optional
        Default: a small draw where the reference takes one, else the example.
    """
    if draw is None:
        found = _difference_on_small_draw(problem)
    else:
        first = [t.at_dtype for t in draw.targets]
        try:
            found = _difference(first, all_results(problem, draw.inputs, is_wide=False))
        except LLMKernelError as error:
            found = error.what
    return f"{_WHAT}: {found}. {_STEP}" if found else ""


def is_doubtful(draw: Expected) -> bool:
    """Whether the reference is so far from its own oracle that chance may be the reason."""
    return any(t.allowed.policy == "derived" and t.allowed.is_above_cap for t in draw.targets)


def _difference_on_small_draw(problem: Problem) -> str:
    for inputs in _small_draws(problem):
        try:
            first = all_results(problem, inputs, is_wide=False)
            return _difference(first, all_results(problem, inputs, is_wide=False))
        except ReferenceProblem:
            continue
    return ""


def _small_draws(problem: Problem) -> Iterator[list[HostInput]]:
    for sizes in probe_sizes(problem.sizes) if problem.sizes else ():
        yield draw_inputs(problem, sizes, "normal", seed=5)
    yield problem.host_inputs()


def _difference(first: Sequence[HostArray], second: Sequence[HostArray]) -> str:
    """Say how two answers differ by more than the order of additions may change; empty where they do not."""
    if [a.shape for a in first] != [b.shape for b in second]:
        return "their shapes differ"
    for number, (a, b) in enumerate(zip(first, second, strict=True)):
        name = dtype_name(a.dtype)
        if DTYPES[name].kind in "fc":
            oracle = widened(a)
            allowed = allowance(name, a.size, 0.0, user=None, has_oracle=False)
            count = deviation(b, oracle, comparable(b, oracle, a), allowed).bad_count
            count += special_mismatch(b, oracle, a).size
        else:
            count = int(np.count_nonzero(a != b))
        if count:
            which = f" of result {number + 1}" if len(first) > 1 else ""
            return f"{count} of {a.size} elements{which} differ"
    return ""
