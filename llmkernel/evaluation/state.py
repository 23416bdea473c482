"""State that outlives a launch: `__device__` variables and `static` ones.

A kernel can keep a result and replay it, or count its launches and misbehave once nobody looks (research: AgentKernelArena
pull requests 112 and 113; KernelBench's cached results). The draws of a verification are few launches; a candidate that
can remember is therefore run many times in a row over one load of its module, on one draw and then on another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile
from typing import TYPE_CHECKING

import numpy as np

from llmkernel.candidate.lexer import CxxToken, tokenize
from llmkernel.devices.base import DeviceLimits, ExecutionOptions
from llmkernel.evaluation.draw import Draw
from llmkernel.evaluation.report import CheckResult
from llmkernel.evaluation.worker.harness import payload_bytes
from llmkernel.problem.problem import HostInput
from llmkernel.problem.relations import restored
from llmkernel.problem.workloads import Workload, new_seed

if TYPE_CHECKING:
    from llmkernel.evaluation.judge import Judge

STATE = "no state between calls"
_VARIANTS = 3
_CHANGED = 0.1
# More than the launches of a verification, and than the warm-up and first samples of a timing.
REPEATS = 128
_MEMORY_BYTES = 256 << 20
_KEEPING = frozenset(("__device__", "__managed__", "static"))
_LASTING_ONLY_HERE = frozenset(
    ("const", "constexpr", "__constant__", "__shared__", "struct", "class", "union", "enum")
)
_ALIGNING = frozenset(("__align__", "alignas", "__attribute__", "__declspec"))


def keeps_state(source: str) -> bool:
    """Whether the source declares a variable that outlives a launch and can be written.

    A declaration that is misread as one costs a few more runs and nothing else.
    """
    tokens = [t for t in tokenize(source) if t.kind != "directive"]
    return any(t.text in _KEEPING and _declares_variable(tokens, i) for i, t in enumerate(tokens))


def _declares_variable(tokens: Sequence[CxxToken], at: int) -> bool:
    before = takewhile(lambda t: t.text not in (";", "{", "}", ")"), reversed(tokens[:at]))
    words = {t.text for t in before}
    i = at + 1
    while i < len(tokens):
        text = tokens[i].text
        if text in _ALIGNING:
            i = _after_brackets(tokens, i + 1)
            continue
        if text in ("(", "{", "}"):
            return False
        if text in (";", "=", "["):
            return not words & _LASTING_ONLY_HERE
        words.add(text)
        i += 1
    return False


def _after_brackets(tokens: Sequence[CxxToken], start: int) -> int:
    depth = 0
    for i in range(start, len(tokens)):
        depth += {"(": 1, ")": -1}.get(tokens[i].text, 0)
        if depth <= 0:
            return i + 1
    return len(tokens)


def check_state(judge: Judge, workloads: Sequence[Workload], limits: DeviceLimits) -> None:
    """Run a candidate that can remember many times over one draw, then over draws that hardly differ, then over another.

    A result that is kept under a few values of the input comes back wrong where only other values have changed.

    Raises
    ------
    llmkernel.evaluation.trial.Verdict
        At the first draw whose result does not stay right.
    """
    if not keeps_state(judge.source):
        judge.add(CheckResult(STATE, "not_applicable", "no variable outlives a launch"))
        return
    normal = [w for w in workloads if w.family == "normal" and w.layout == "contiguous" and not w.is_long]
    chosen = next((w for w in normal if not w.is_users_own), normal[0] if normal else None)
    draws = [] if chosen is None else _draws(judge, chosen, limits)
    if not draws:
        judge.add(CheckResult(STATE, "not_applicable", "no draw of ordinary values can be repeated"))
        return
    session = judge.session
    assert session is not None
    repeats = [_affordable_repeats(draws[0]), *[2] * (len(draws) - 1)]
    options = ExecutionOptions(timeout_seconds=judge.timeout, seed=new_seed() & 0x7FFFFFFF)
    payloads = [d.payloads for d in draws]
    results = session.sequence(draws[0].plan, payloads, repeats=repeats, seed=new_seed(), options=options)
    for draw, result in zip(draws, results, strict=False):
        draw.payloads = {}
        draw.fill(result)
        judge.inspect_draw(draw, limits)
    text = f"{sum(repeats)} runs of {len(draws)} draws over one load of the module stay right"
    judge.add(CheckResult(STATE, "passed", text))
    judge.dropped.append(f"More than {max(repeats)} calls in a row, although a variable outlives a launch.")


def _draws(judge: Judge, workload: Workload, limits: DeviceLimits) -> list[Draw]:
    first = judge.prepare_draw(replace(workload, seed=new_seed()), limits)
    last = judge.prepare_draw(replace(workload, seed=new_seed()), limits)
    if first is None or last is None:
        return []
    between = []
    for _ in range(_VARIANTS):
        mixed = _partly(first.expected.inputs, last.expected.inputs, new_seed())
        inputs = restored(judge.problem, mixed)
        between.append(judge.prepare_draw(workload, limits, inputs))
    return [d for d in (first, *between, last) if d is not None and d.plan == first.plan]


def _partly(base: Sequence[HostInput], other: Sequence[HostInput], seed: int) -> list[HostInput]:
    """Return `base` with a tenth of its elements, at random places, taken from `other`."""
    rng = np.random.default_rng(seed)
    out: list[HostInput] = []
    for mine, theirs in zip(base, other, strict=True):
        if isinstance(mine, np.ndarray) and isinstance(theirs, np.ndarray) and mine.shape == theirs.shape:
            out.append(np.where(rng.random(mine.shape) < _CHANGED, theirs, mine).astype(mine.dtype))
        else:
            out.append(mine)
    return out


def _affordable_repeats(draw: Draw) -> int:
    """Return how often a draw is repeated, so that all its copies fit into a bounded amount of memory."""
    total = sum(payload_bytes(b) for b in draw.plan.buffers)
    return int(min(REPEATS, max(4, _MEMORY_BYTES // max(1, total)))) // 2 * 2
