"""How many inputs one result element depends on, measured by planting NaN.

The tolerance grows with the square root of the length of the reduction. Taking the longest axis for it would forgive an
element-wise kernel half precision, so the length is measured: one input element becomes NaN, and the results that become
NaN with it are counted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from llmkernel.errors import LLMKernelError, ReferenceProblem
from llmkernel.problem.arrays import HostArray
from llmkernel.problem.dtypes import DTYPES, dtype_name
from llmkernel.problem.problem import HostInput, Problem
from llmkernel.problem.workloads import draw_inputs, probe_sizes

_PLACES = 3
_MEASURED_ELEMENTS = 1 << 20


class ReductionLengths:
    """Reduction lengths of a problem's results at any sizes.

    Parameters
    ----------
    problem : Problem
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._probes: list[tuple[dict[str, int], list[float]]] = []
        self._cache: dict[tuple[tuple[str, int], ...], list[int]] = {}
        for sizes in probe_sizes(problem.sizes):
            try:
                self._probes.append((sizes, measure(problem, draw_inputs(problem, sizes, "normal", seed=3))))
            except LLMKernelError:
                continue

    def at(self, sizes: Mapping[str, int], inputs: Sequence[HostInput]) -> list[int]:
        """Return the length for each result: measured on small draws, extrapolated to large ones."""
        key = tuple(sizes.items())
        if key not in self._cache:
            self._cache[key] = self._compute(sizes, inputs)
        return self._cache[key]

    def longest(self, sizes: Mapping[str, int]) -> int:
        """Return an upper estimate of the longest reduction, without running the reference."""
        if len(self._probes) == 2:
            return max(self._extrapolate(i, sizes) for i in range(len(self._probes[0][1])))
        return max(1, sum(int(np.prod(v.shape)) for v in self._problem.inputs if hasattr(v, "shape")))

    def _compute(self, sizes: Mapping[str, int], inputs: Sequence[HostInput]) -> list[int]:
        total = sum(v.size for v in inputs if isinstance(v, np.ndarray))
        if len(self._probes) == 2:
            return [self._extrapolate(i, sizes) for i in range(len(self._probes[0][1]))]
        if total <= _MEASURED_ELEMENTS:
            try:
                return [max(1, round(n)) for n in measure(self._problem, inputs)]
            except LLMKernelError:
                pass
        longest = max((max(v.shape, default=1) for v in inputs if isinstance(v, np.ndarray)), default=1)
        count = max(1, len(self._problem.contract.dtypes) + len(self._problem.contract.mutated))
        return [longest] * count

    def _extrapolate(self, result: int, sizes: Mapping[str, int]) -> int:
        (first, n1), (second, n2) = self._probes
        symbols = list(first)
        products: list[tuple[str, ...]] = [()]
        for size in range(1, min(3, len(symbols)) + 1):
            products += _combinations(symbols, size)

        def misfit(product: tuple[str, ...]) -> float:
            a = math.prod(first[s] for s in product)
            b = math.prod(second[s] for s in product)
            return abs(math.log(max(1.0, n1[result]) / a)) + abs(math.log(max(1.0, n2[result]) / b))

        best = min(products, key=misfit)
        known = math.prod(first[s] for s in best)
        factor = max(1.0, n1[result]) / known
        return max(1, round(math.prod(sizes.get(s, 1) for s in best) * factor))


def _combinations(symbols: Sequence[str], size: int) -> list[tuple[str, ...]]:
    from itertools import combinations

    return list(combinations(symbols, size))


def measure(problem: Problem, inputs: Sequence[HostInput]) -> list[float]:
    """Return, for each result, the mean number of float input elements that one result element depends on."""
    rng = np.random.default_rng(11)
    base = results_with_mutations(problem, inputs)
    lengths = [0.0] * len(base)
    floats = [
        i
        for i, v in enumerate(inputs)
        if isinstance(v, np.ndarray) and v.size and DTYPES[dtype_name(v.dtype)].kind in "fc"
    ]
    for i in floats:
        counts = [0.0] * len(base)
        for _ in range(_PLACES):
            planted = list(inputs)
            copy = np.array(inputs[i])
            copy.reshape(-1)[int(rng.integers(copy.size))] = np.nan
            planted[i] = copy
            changed = results_with_mutations(problem, planted)
            if [r.shape for r in changed] != [r.shape for r in base]:
                raise ReferenceProblem("The shapes of the reference's results depend on values.")
            for r, (was, now) in enumerate(zip(base, changed, strict=True)):
                if DTYPES[dtype_name(now.dtype)].kind in "fc":
                    counts[r] += float(np.count_nonzero(np.isnan(now) & ~np.isnan(was))) / _PLACES
        for r, count in enumerate(counts):
            lengths[r] = max(lengths[r], count * inputs[i].size / max(1, base[r].size))
    if not floats:
        total = sum(v.size for v in inputs if isinstance(v, np.ndarray))
        lengths = [total / max(1, r.size) for r in base]
    return lengths


def results_with_mutations(problem: Problem, inputs: Sequence[HostInput]) -> list[HostArray]:
    """Return the reference's results followed by the inputs that it changed."""
    run = problem.run_reference(inputs)
    return [*run.results, *(run.inputs_after[i] for i in problem.contract.mutated)]
