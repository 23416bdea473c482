"""Int products against the sizes that are verified, and against greater ones that nobody runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from llmkernel.candidate.int_overflow import Overflow, overflows
from llmkernel.devices.base import DeviceLimits
from llmkernel.devices.plan import LaunchPlan, ScalarArgument
from llmkernel.errors import LLMKernelError
from llmkernel.evaluation.binding import shape_arguments
from llmkernel.evaluation.draw import Finding
from llmkernel.evaluation.trial import Verdict
from llmkernel.problem.workloads import Workload

if TYPE_CHECKING:
    from llmkernel.evaluation.judge import Judge

RULE = "int-overflow"
REASON = "an index that does not fit into an int reaches another element, or none"
NEXT_STEP = "Compute it in 64 bits: `(long long)row * N`."
_LIMIT = 1 << 31
_SHOWN = 3


def refuse_overflows(
    judge: Judge, planned: Sequence[tuple[Workload, LaunchPlan]], limits: DeviceLimits
) -> None:
    """Refuse a candidate whose int arithmetic overflows at sizes that are verified; list where it would beyond them.

    Raises
    ------
    llmkernel.evaluation.trial.Verdict
        ``rejected``, with the rule, the line, the arithmetic and the sizes.
    """
    assert judge.candidate is not None
    seen: set[tuple[object, ...]] = set()
    named: set[int] = set()
    for workload, plan in planned:
        key = tuple((x.kernel, x.grid, x.block, _scalars(plan)) for x in plan.launches[:8])
        if key in seen or not _is_large(plan):
            continue
        seen.add(key)
        for each in overflows(judge.candidate, plan):
            named.add(each.line)
            # Sizes that are too long to be emulated are not run there.
            if each.is_certain and not (workload.is_long and judge.device == "cpu"):
                raise Verdict(_refusal(each, workload), "static rules")
            judge.dropped.append(
                f"{_sizes(workload.sizes)}: line {each.line}: {each}, if the data lead there."
            )
    _list_beyond(judge, planned, limits, named)


def _refusal(overflow: Overflow, workload: Workload) -> Finding:
    sizes = _sizes(workload.sizes)
    what = f"line {overflow.line}: {overflow}, at {sizes}. {RULE}: {REASON}. {NEXT_STEP}"
    return Finding("rejected", what, {"rule": RULE, "line": overflow.line, "sizes": dict(workload.sizes)})


def _list_beyond(
    judge: Judge,
    planned: Sequence[tuple[Workload, LaunchPlan]],
    limits: DeviceLimits,
    named: set[int],
) -> None:
    """List int arithmetic that overflows once an array has 2^31 elements, where the header lets such sizes through."""
    own = next((w for w, _ in planned if w.is_users_own and w.sizes), None)
    assert judge.candidate is not None
    if own is None or "*" not in judge.source:
        return
    large = replace(own, sizes=_enlarged(judge, own.sizes), family="normal", layout="contiguous")
    try:
        arguments = shape_arguments(judge.problem, judge.candidate, large)
        plan = judge.candidate.plan(arguments, limits)
    except LLMKernelError:
        return  # a `require`, a parameter's type or the device keeps such sizes out
    found = [o for o in overflows(judge.candidate, plan) if o.line not in named]
    judge.dropped += [f"{_sizes(large.sizes)}: line {o.line}: {o}." for o in found[:_SHOWN]]


def _enlarged(judge: Judge, sizes: dict[str, int]) -> dict[str, int]:
    """Return sizes in about the same proportion at which the largest array passes 2^31 elements."""
    result = {k: max(2, n) for k, n in sizes.items()}
    shapes = [
        s.dims for s in judge.problem.signature.arrays() if all(d.names <= result.keys() for d in s.dims)
    ]
    for _ in range(40):
        if max((math.prod(d.evaluate(result) for d in dims) for dims in shapes), default=_LIMIT) >= _LIMIT:
            break
        result = {k: 2 * n for k, n in result.items()}
    return result


def _is_large(plan: LaunchPlan) -> bool:
    """Whether products of two sizes, or of all of them, can pass 2^31 in a plan."""
    for launch in plan.launches[:64]:
        axes = [g * b for g, b in zip(launch.grid, launch.block, strict=True)]
        numbers = [
            int(a.value)
            for a in launch.arguments
            if isinstance(a, ScalarArgument) and isinstance(a.value, int)
        ]
        values = [abs(n) for n in (*axes, *numbers) if n]
        if max(values) ** 2 >= _LIMIT or math.prod(values) >= _LIMIT:
            return True
    return False


def _scalars(plan: LaunchPlan) -> tuple[object, ...]:
    return tuple(a.value for x in plan.launches[:8] for a in x.arguments if isinstance(a, ScalarArgument))


def _sizes(sizes: dict[str, int]) -> str:
    return ", ".join(f"{k}={n}" for k, n in sizes.items()) or "the sizes of the example"
