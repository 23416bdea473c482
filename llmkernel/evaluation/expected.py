"""What one draw must give: the float64 oracle, the reference at its own dtype, and what is allowed between.

Lives in the notebook's process only; nothing of it is ever sent to a worker.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from llmkernel.errors import ReferenceProblem
from llmkernel.evaluation.reduction import ReductionLengths
from llmkernel.evaluation.tolerance import Allowance, allowance, comparable, row_error
from llmkernel.problem.arrays import HostArray, widened
from llmkernel.problem.dtypes import DTYPES, dtype_name
from llmkernel.problem.problem import HostInput, Problem, ReferenceRun
from llmkernel.problem.relations import breaks_relation
from llmkernel.problem.workloads import Workload


@dataclass
class Target:
    """One array that a candidate must produce.

    Attributes
    ----------
    dtype : str
        The contract's dtype.
    shape : tuple of int
    at_dtype : numpy.ndarray
        The reference's own result.
    oracle : numpy.ndarray
        float64, complex128, or the exact values of integers and booleans.
    has_oracle : bool
        False where the reference does not run in float64: `oracle` is then `at_dtype`, widened.
    allowed : Allowance
    input_index : int or None
        The input that is changed in place to carry this result; None for a returned one.
    """

    dtype: str
    shape: tuple[int, ...]
    at_dtype: HostArray
    oracle: HostArray
    has_oracle: bool
    allowed: Allowance
    input_index: int | None = None

    @property
    def is_exact(self) -> bool:
        """Whether values must agree bit for bit: integers and booleans."""
        return DTYPES[self.dtype].kind in "iub"


@dataclass
class Expected:
    """The targets of one draw: returned results first, then inputs changed in place."""

    workload: Workload
    inputs: list[HostInput]
    targets: list[Target]
    problem: Problem

    def perturbed(self, seed: int | None, factor: float = 1.0) -> list[HostArray] | None:
        """Return the oracle's results when every float input is moved by half a unit in the last place.

        The unit is that of the input's dtype, or of float32 where that is finer. Elements that equal a scalar stay: they
        meet a threshold on purpose, and one that is moved across it would excuse every result of its row.

        Parameters
        ----------
        seed : int or None
            Of random directions; None moves every value up, as rounding errors that do not cancel would.
        factor : float
            How many halves of a unit.

        Returns
        -------
        list of numpy.ndarray or None
            None where the reference does not run in float64.
        """
        rng = None if seed is None else np.random.default_rng(seed)
        scalars = [v for v in self.inputs if not isinstance(v, np.ndarray) and v]
        moved = [
            _moved(v, rng, factor, scalars)
            if isinstance(v, np.ndarray) and DTYPES[dtype_name(v.dtype)].kind in "fc"
            else v
            for v in self.inputs
        ]
        try:
            return all_results(self.problem, moved, is_wide=True)
        except ReferenceProblem:
            return None

    def second_opinion(self) -> list[HostArray] | None:
        """Return the oracle's results by the framework's other implementation, or None where there is none.

        torch's own operators do not agree on what an infinite input gives, not even among the shapes of one operator:
        its RMS norm makes 0 of a finite element beside an infinite one, or NaN where the row cannot be vectorized.
        """
        run = self.problem.run_reference_on_host(self.inputs)
        if run is None:
            return None
        results = [*run.results, *(run.inputs_after[i] for i in self.problem.contract.mutated)]
        same = [r.shape for r in results] == [t.shape for t in self.targets]
        return results if same else None


def _moved(
    value: HostArray, rng: np.random.Generator | None, factor: float, kept: Sequence[complex]
) -> HostArray:
    wide = value.astype(np.complex128 if np.iscomplexobj(value) else np.float64)
    if rng is None:
        sign = np.where(np.real(wide) < 0, -1.0, 1.0)
    else:
        sign = np.where(rng.random(value.shape) < 0.5, -1.0, 1.0)
    # 16-bit inputs are exact, and sums of them are kept in float32: moved by their own eps, they would forgive half
    # precision under a float32 contract.
    eps = min(DTYPES[dtype_name(value.dtype)].eps, float(np.finfo(np.float32).eps))
    moved = np.asarray(wide * (1.0 + 0.5 * factor * eps * sign))
    for scalar in kept:
        np.copyto(moved, wide, where=wide == scalar)
    return moved


def all_results(problem: Problem, inputs: Sequence[HostInput], *, is_wide: bool) -> list[HostArray]:
    """Return what the reference returns for a draw, followed by the inputs that it changes in place."""
    return _results(problem, problem.run_reference(inputs, is_wide=is_wide))


def _results(problem: Problem, run: ReferenceRun) -> list[HostArray]:
    return [*run.results, *(run.inputs_after[i] for i in problem.contract.mutated)]


def _refuse_meaningless(problem: Problem, inputs: Sequence[HostInput], run: ReferenceRun) -> None:
    """Refuse a draw whose right answer is nobody's: inputs out of an order that is relied on, undefined conversions."""
    disordered = breaks_relation(problem, inputs)
    if disordered:
        raise ReferenceProblem(
            f"{disordered} is out of order.",
            rule="a draw keeps the order of the example where the reference relies on it",
            next_step="Draw it again.",
        )
    if run.has_undefined_casts and any(DTYPES[dtype_name(r.dtype)].kind in "iu" for r in run.results):
        raise ReferenceProblem(
            "It converts NaN, an infinity or too large a number to an integer, which gives any number.",
            rule="a right answer is the same on every processor",
            next_step="Treat such values apart in the reference, if the kernel is to meet them.",
        )


def expect(
    problem: Problem, workload: Workload, inputs: list[HostInput], lengths: ReductionLengths
) -> Expected:
    """Run the reference at its own dtype and in float64.

    Raises
    ------
    llmkernel.errors.ReferenceProblem
        When the reference refuses this draw: the caller drops and lists it.
    """
    run = problem.run_reference(inputs)
    if workload.family != "example":
        _refuse_meaningless(problem, inputs, run)
    at_dtype = _results(problem, run)
    try:
        wide: list[HostArray] | None = all_results(problem, inputs, is_wide=True)
    except ReferenceProblem:
        wide = None
    if wide is not None and [w.shape for w in wide] != [a.shape for a in at_dtype]:
        wide = None
    n = lengths.at(workload.sizes, inputs)
    returned = len(problem.contract.dtypes)
    targets = []
    for i, mine in enumerate(at_dtype):
        index = None if i < returned else problem.contract.mutated[i - returned]
        targets.append(
            _target(
                problem,
                mine,
                None if wide is None else wide[i],
                n[i] if i < len(n) else max(n, default=1),
                index,
            )
        )
    return Expected(workload, inputs, targets, problem)


def _target(problem: Problem, mine: HostArray, wide: HostArray | None, n: int, index: int | None) -> Target:
    dtype = dtype_name(mine.dtype)
    kind = DTYPES[dtype].kind
    if kind in "iub":
        exact = allowance("float32", 1, 0.0, user=0.0, has_oracle=True)
        policy = Allowance(0.0, 0.0, 0.0, exact.reduction_length, "exact")
        return Target(dtype, mine.shape, mine, mine, has_oracle=True, allowed=policy, input_index=index)
    as_wide = widened(mine)
    has_oracle = wide is not None and wide.dtype == as_wide.dtype
    oracle = wide if wide is not None and has_oracle else as_wide
    error = 0.0
    if has_oracle and mine.size:
        mask = comparable(mine, oracle, mine)
        error = row_error(mine, oracle, mask)
    allowed = allowance(dtype, n, error, user=problem.tolerance, has_oracle=has_oracle)
    return Target(dtype, mine.shape, mine, oracle, has_oracle, allowed, index)
