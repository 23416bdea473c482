"""Mechanical mutants of the honest kernels: `python -m tests.rogues.mutate [--device cpu] [--only WORD] [--json FILE]`.

Each mutant is one small change of one place. A mutant that passes is a survivor, and `unseen_mutants.tsv` says why: the
change means nothing (these do not count), or, where the reason begins with ``cpu:``, that device cannot see it (these
count as missed). The exit status is 0 where every survivor is explained.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from llmkernel.cli import gallery
from llmkernel.evaluation.evaluate import choose_device, evaluate

_COMPARISONS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}


@dataclass(frozen=True)
class Mutant:
    """One changed kernel: what was done, at which line (1-based), and the line as it became."""

    kernel: str
    operator: str
    line: int
    text: str
    source: str


def _barrier(line):
    """Drop a barrier."""
    for m in re.finditer(r"\b__sync(?:threads|warp)\(\);", line):
        yield m, ""


def _index(line):
    """Shift a read or written index by one."""
    for m in re.finditer(r"(?<=\w)\[([^\[\]]+)\](?!\s*[;\[]\s*$)", line):
        if not re.match(r"\s*(?:__shared__|extern)", line):
            yield m, f"[{m[1]} + 1]"


def _comparison(line):
    """Swap a comparison for its neighbour."""
    for m in re.finditer(r"(?<= )(<=|>=|==|!=|<|>)(?= )", line):
        yield m, _COMPARISONS[m[1]]


def _grid(line):
    """Shrink the grid: round down instead of up."""
    if "<<<" in line:
        for m in re.finditer(r"ceil_div\((\w+), (\d+)\)", line):
            yield m, f"{m[1]} // {m[2]}"


def _tail(line):
    """Leave the last element out."""
    for m in re.finditer(r"< (M|N|K|count)\b", line):
        yield m, f"< {m[1]} - 1"


def _constant(line):
    """Change a constant by a thousandth, or by one."""
    for m in re.finditer(r"\b\d+\.\d+(?:e-?\d+)?(?=f?\b)", line):
        if float(m[0]):
            yield m, f"{float(m[0]) * 1.001:.9g}" if float(m[0]) != 1 else "1.001"
    for m in re.finditer(r"\b1664525u|\b1013904223u|\b127\b|\b255\b", line):
        yield m, re.sub(r"\d+", lambda d: str(int(d[0]) - 1), m[0])


def _maximum(line):
    """Drop the subtraction of the maximum."""
    for m in re.finditer(r" - top\b", line):
        yield m, ""


def _accumulator(line):
    """Narrow an accumulator to 11 bits of mantissa."""
    for m in re.finditer(r"\b(sum|product|mean|var) (\+|\*)= ([^;]+);", line):
        kept = f"__float_as_uint((float)({m[1]} {m[2]} ({m[3]})))"
        yield m, f"{m[1]} = __uint_as_float(({kept} + 0x800u) & 0xfffff000u);"


def _sign(line):
    """Turn an addition into a subtraction."""
    for m in re.finditer(r" \+= ", line):
        if "for (" not in line:
            yield m, " -= "


def _atomic(line):
    """Replace an atomic addition by a plain one."""
    for m in re.finditer(r"\batomicAdd\((&?)([^,;]+), ([^;]+)\);", line):
        target = m[2] if m[1] else f"*({m[2]})"
        yield m, f"{target} += {m[3]};"


OPERATORS = {f.__name__[1:]: f for f in (
    _barrier, _index, _comparison, _grid, _tail, _constant, _maximum, _accumulator, _sign, _atomic)}  # fmt: skip

_UNSEEN = Path(__file__).with_name("unseen_mutants.tsv")


def unseen(device: str) -> dict[tuple[str, str, str], str]:
    """Return why mutants cannot be seen on a device, by kernel, operator and changed line."""
    rows = [line.split("\t") for line in _UNSEEN.read_text(encoding="utf-8").splitlines()[1:]]
    found = {(kernel, operator, text): reason for kernel, operator, text, reason in rows}
    return {k: v for k, v in found.items() if device == "cpu" or not v.startswith("cpu:")}


def mutants(case: gallery.Case):
    """Yield every mutant of one honest kernel."""
    lines = case.source.split("\n")
    seen = {case.source}
    for number, line in enumerate(lines[1:], 1):
        is_header = line.startswith("//!")
        for name, operator in OPERATORS.items():
            if is_header != (name == "grid") or line.startswith("#"):
                continue
            for match, text in operator(line):
                changed = line[: match.start()] + text + line[match.end() :]
                source = "\n".join([*lines[:number], changed, *lines[number + 1 :]])
                if source not in seen:
                    seen.add(source)
                    yield Mutant(case.name, name, number + 1, changed.strip(), source)


def run(device: str, only: str, part: tuple[int, int], on_result=print) -> list[dict]:
    """Judge the mutants; `part` (k, n) takes every n-th, beginning with the k-th."""
    cases, problems = gallery.load_gallery(gallery.default_directory(), device)
    every = [(c, m) for c in cases if c.is_honest and not c.skipped and only in c.name for m in mutants(c)]
    reasons = unseen(device)
    out = []
    for case, mutant in every[part[0] :: part[1]]:
        reference, inputs = problems[case.problem]
        started = time.perf_counter()
        report = evaluate(mutant.source, reference, inputs(), device=device, level="full", timeout=2.0)
        reason = reasons.get((mutant.kernel, mutant.operator, mutant.text), "")
        out.append(
            {
                "kernel": mutant.kernel,
                "operator": mutant.operator,
                "line": mutant.line,
                "text": mutant.text,
                "outcome": report.outcome,
                "headline": report.headline[:200],
                "seconds": round(time.perf_counter() - started, 2),
                "reason": reason if report.outcome == "passed" else "",
            }
        )
        if report.outcome == "passed":
            on_result(
                f"{mutant.kernel}:{mutant.line} {mutant.operator}: {mutant.text}  {reason and '(' + reason + ')'}"
            )
    return out


def main() -> int:
    """Print survivors and the score."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--only", default="")
    parser.add_argument("--part", default="0/1", help="K/N: every N-th mutant, beginning with the K-th")
    parser.add_argument("--json", default="")
    arguments = parser.parse_args()
    first, _, step = arguments.part.partition("/")
    device = choose_device(arguments.device)
    results = run(device, arguments.only, (int(first), int(step or 1)))
    survivors = [r for r in results if r["outcome"] == "passed"]
    unexplained = [r for r in survivors if not r["reason"]]
    idle = [r for r in survivors if r["reason"] and not r["reason"].startswith("cpu:")]
    refused = [r for r in results if r["outcome"] in ("not_compiled", "rejected")]
    counted = len(results) - len(refused) - len(idle)
    missed = len(survivors) - len(idle)
    share = 100.0 * (counted - missed) / counted if counted else 100.0
    seconds = sum(r["seconds"] for r in results)
    print(
        f"mutants on {device}: {counted - missed} of {counted} caught ({share:.1f} %); {missed} missed, of these "
        f"{len(unexplained)} unexplained; {len(idle)} change nothing, {len(refused)} do not compile; {seconds:.0f} s"
    )
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(results, indent=1) + "\n")
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
