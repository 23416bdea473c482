"""Checked mode alone, with no value compared: `python -m tests.rogues.checked [--only WORD]`.

Every case of the gallery runs in checked mode over its two quick draws, and so does every honest kernel that has lost a
barrier or an atomic (`mutate`). Printed is what was found by kind, and every finding in an honest kernel, of which there
must be none; the exit status is 0 where there is none.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from dataclasses import dataclass, field

from llmkernel.candidate.candidate import parse_candidate
from llmkernel.cli import gallery
from llmkernel.devices.cpu.checked import CheckedFinding, run_checked
from llmkernel.errors import LLMKernelError
from llmkernel.evaluation.evaluate import adopt_signature
from llmkernel.evaluation.judge import Judge
from llmkernel.evaluation.trial import Verdict
from llmkernel.problem.problem import make_problem
from llmkernel.problem.reference import make_reference
from llmkernel.problem.workloads import quick_workloads
from tests.rogues import mutate

# What no value need show.
OPERATORS = ("barrier", "atomic")


@dataclass
class Tally:
    """How many of each kind were run, and how many of them something was found in."""

    run: Counter[str] = field(default_factory=Counter)
    seen: Counter[str] = field(default_factory=Counter)

    def add(self, kind: str, *, is_seen: bool) -> None:
        """Count one."""
        self.run[kind] += 1
        self.seen[kind] += is_seen


def findings_of(source: str, problem: str, problems: gallery.Problems) -> list[CheckedFinding] | None:
    """Return what checked mode finds in a source; None where it does not come to run."""
    reference, inputs = problems[problem]
    made, values = make_reference(reference, inputs())
    subject = make_problem(made, values)
    try:
        adopt_signature(subject, parse_candidate(source).header.signature)
        judge = Judge(subject, source, "cpu")
        judge.parse()
        limits = judge.open()
        taken = judge.compile(quick_workloads(subject), limits)
        draws = [judge.prepare_draw(w, limits) for w in taken]
    except (Verdict, LLMKernelError):
        return None
    return [f for d in draws if d is not None for f in run_checked(source, d.plan, d.payloads).findings]


def main() -> int:
    """Print the score."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="cases whose name, kind or problem contains it")
    only = parser.parse_args().only
    cases, problems = gallery.load_gallery(gallery.default_directory(), "cpu", only)
    rogues, mutants, honest, alarms = Tally(), Tally(), 0, []
    for case in cases:
        found = findings_of(case.source, case.problem, problems)
        if found is None:
            continue
        if not case.is_honest:
            rogues.add(case.kind, is_seen=bool(found))
            continue
        honest += 1
        alarms += [f"  false alarm: {case.name}: {f.message}" for f in found]
        for mutant in mutate.mutants(case):
            if mutant.operator in OPERATORS:
                seen = findings_of(mutant.source, case.problem, problems)
                mutants.add(f"lost {mutant.operator}", is_seen=bool(seen))
    for tally in (rogues, mutants):
        for kind, count in sorted(tally.run.items()):
            print(f"{kind}: {tally.seen[kind]} of {count}")
    print("\n".join([f"{len(alarms)} alarms in {honest} honest kernels", *alarms]))
    return 1 if alarms else 0


if __name__ == "__main__":
    sys.exit(main())
