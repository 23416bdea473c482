"""Branches of a launch header that no draw takes: sizes are sought that lead there, and what stays unlaunched is listed.

A header may send a size in five hundred to another kernel. Planning a call costs a fraction of a millisecond and runs
nothing, so many sizes can be tried before one of them is drawn: first those that the header's own numbers suggest. Some
launches no size leads to (another dtype's, a smaller GPU's), so the search ends after a quarter of a second.

A launch of a fixed number of threads is looked at too: one thread for each partial result is enough until there are more
partial results than threads, a size that no other draw may reach. The last one may be of no use, hence a tenth more.
"""

from __future__ import annotations

import itertools
import math
import re
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from llmkernel.candidate.expressions import Expression
from llmkernel.candidate.statements import Launch, Let, Repeat, Statement, When
from llmkernel.devices.base import DeviceLimits
from llmkernel.devices.plan import LaunchPlan, ScalarArgument
from llmkernel.errors import LLMKernelError
from llmkernel.evaluation.binding import shape_arguments
from llmkernel.problem.signature import ArraySpec
from llmkernel.problem.workloads import LARGEST_DERIVED_ELEMENTS, Workload, element_count, new_seed

if TYPE_CHECKING:
    from llmkernel.evaluation.judge import Judge

_FEWEST_TRIES = 400
_TRIES = 5000
_SECONDS = 0.25
# What stands between a number in a condition and the size it is about: bytes of an element, elements of a vector.
_FACTORS = (1, 2, 4, 8, 16, 32)
_LARGEST_SIZE = 1 << 12
_LONGEST_SIZE = 1 << 20
# Of an argument of a launch: the launch's line, and the argument's number.
Place = tuple[int, int]
_OF_THE_DEVICE = frozenset(("num_sms", "max_shared_bytes", "repeat_index"))


def workloads_for_branches(
    judge: Judge, plans: Sequence[LaunchPlan], limits: DeviceLimits
) -> list[tuple[Workload, LaunchPlan]]:
    """Return workloads, with their plans, that make the launches of the header that `plans` leave out, or crowd fixed ones.

    Launches that no size was found for are added to the judge's list of what was left out.
    """
    assert judge.candidate is not None
    done = {launch.line for plan in plans for launch in plan.launches}
    header = judge.candidate.header
    open_ = {x.line: (x, guards) for x, guards in _launches(header.statements, ()) if x.line not in done}
    scalars = {s.name for s in header.signature.inputs if not isinstance(s, ArraySpec)}
    by_size = {
        line
        for line, (_, guards) in open_.items()
        if {n for g in guards for n in g.names} - _OF_THE_DEVICE - scalars
    }
    cramped = _cramped(judge, plans)
    found: list[tuple[Workload, LaunchPlan]] = []
    limit = time.monotonic() + _SECONDS
    numbers = {int(n) for n in re.findall(r"\d+", _conditions_text(header.statements))}
    tried = itertools.chain(
        _near(judge, numbers) if by_size else (),
        _near(judge, {9 * t * n // 8 for t in cramped.values() for n in numbers | {1}}, factors=(1,)),
        _sizes(judge) if by_size else (),
    )
    for turn, sizes in enumerate(tried):
        if turn >= _FEWEST_TRIES and time.monotonic() > limit:
            break
        workload = Workload(sizes, "normal", new_seed())
        try:
            plan = judge.candidate.plan(shape_arguments(judge.problem, judge.candidate, workload), limits)
        except LLMKernelError:
            continue  # a `require`, or more than the device launches: callers get the same error
        reached = {launch.line for launch in plan.launches} & by_size
        crowded = {place for place, value in _scalars_of(plan) if value > 1.1 * cramped.get(place, value)}
        if reached or crowded:
            found.append((workload, plan))
            by_size -= reached
            open_ = {line: rest for line, rest in open_.items() if line not in reached}
            cramped = {place: threads for place, threads in cramped.items() if place not in crowded}
        if not by_size and not cramped:
            break
    for line, (launch, _) in open_.items():
        judge.dropped.append(f"line {line}: `{launch.kernel}` was never launched: no draw leads there.")
    return found


def _cramped(judge: Judge, plans: Sequence[LaunchPlan]) -> dict[Place, int]:
    """Return the arguments, with the threads, of launches of fixed size whose threads no argument has exceeded so far.

    Only arguments that follow from sizes count: those that differ between plans.
    """
    assert judge.candidate is not None
    fixed = {
        launch.line: math.prod(e.evaluate({}) for e in (*launch.grid, *launch.block))
        for launch in judge.candidate.header.launches
        if not any(e.names or e.facts for e in (*launch.grid, *launch.block))
    }
    seen: dict[Place, set[int]] = {}
    for plan in plans:
        for place, value in _scalars_of(plan):
            if place[0] in fixed:
                seen.setdefault(place, set()).add(value)
    return {
        p: fixed[p[0]] for p, values in seen.items() if len(values) > 1 and max(values) <= 1.1 * fixed[p[0]]
    }


def _scalars_of(plan: LaunchPlan) -> Iterator[tuple[Place, int]]:
    """Yield the integers that are passed to kernels, with the line of the launch and the number of the argument."""
    for launch in plan.launches:
        for number, argument in enumerate(launch.arguments):
            if isinstance(argument, ScalarArgument) and isinstance(argument.value, int):
                yield (launch.line, number), argument.value


def _launches(
    statements: Sequence[Statement], guards: tuple[Expression, ...]
) -> Iterator[tuple[Launch, tuple[Expression, ...]]]:
    """Yield every launch with the conditions that decide whether it is made."""
    for statement in statements:
        if isinstance(statement, Launch):
            yield statement, guards
        elif isinstance(statement, Repeat):
            yield from _launches(statement.body, (*guards, statement.count))
        elif isinstance(statement, When):
            inside = guards
            for branch in statement.branches:
                inside = (*inside, branch.condition)
                yield from _launches(branch.body, inside)
            yield from _launches(statement.otherwise, inside)


def _conditions_text(statements: Sequence[Statement]) -> str:
    """Return the text of all conditions, and of the names that they may use."""
    parts = []
    for statement in statements:
        if isinstance(statement, Let):
            parts.append(statement.value.text)
        elif isinstance(statement, Repeat):
            parts += [statement.count.text, _conditions_text(statement.body)]
        elif isinstance(statement, When):
            for branch in statement.branches:
                parts += [branch.condition.text, _conditions_text(branch.body)]
            parts.append(_conditions_text(statement.otherwise))
    return " ".join(parts)


def _near(judge: Judge, numbers: set[int], factors: Sequence[int] = _FACTORS) -> Iterator[dict[str, int]]:
    """Yield sizes at and beside the numbers of the header and small multiples of them, one axis at a time."""
    symbols = list(judge.problem.sizes)
    values = sorted({n * f + d for n in numbers for f in factors for d in (0, 1)} - {0})
    for value, symbol in itertools.product(values, symbols):
        sizes = dict.fromkeys(symbols, 3) | {symbol: value}
        if value <= _LONGEST_SIZE and element_count(judge.problem, sizes) <= LARGEST_DERIVED_ELEMENTS:
            yield sizes


def _sizes(judge: Judge) -> Iterator[dict[str, int]]:
    """Yield sizes that nobody knows beforehand: of all magnitudes, now and then with one long axis."""
    symbols = list(judge.problem.sizes)
    if not symbols:
        return
    rng = np.random.default_rng(new_seed())
    count = len(symbols)
    largest = min(_LARGEST_SIZE, int((LARGEST_DERIVED_ELEMENTS / 2) ** (1.0 / count)))
    for turn in range(_TRIES):
        drawn = np.exp2(rng.uniform(0.0, np.log2(largest), count))
        if turn % 2:
            drawn = rng.uniform(1.0, largest + 1.0, count)
        if turn % 4 == 2:
            drawn[rng.integers(count)] = np.exp2(rng.uniform(10.0, np.log2(_LONGEST_SIZE)))
        sizes = {s: int(n) for s, n in zip(symbols, drawn, strict=True)}
        if element_count(judge.problem, sizes) <= LARGEST_DERIVED_ELEMENTS:
            yield sizes
