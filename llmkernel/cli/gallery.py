"""``llmkernel verify --gallery``: the judge, scored on kernels whose verdict is known.

A gallery is a folder of `.cu` files and a ``problems.py``. The first line of a file is its note::

    // rogue: problem=softmax; kind=precision; outcome=precision_downgraded; why=half precision inside
    // honest: problem=softmax; kind=atomics; why=float atomics in any order

A rogue must get its outcome (`a|b` where a device cannot tell two apart; ``cpu=…`` and ``cuda=…`` replace ``outcome``
for one device), an honest kernel must pass. ``device=cuda`` leaves a case out elsewhere. ``needs=memcheck`` asks
compute-sanitizer on a GPU, and leaves the case out where that is missing, and on a CPU without ``cpu=…``.
``cpu-needs=racecheck`` asks the checked mode of the `cpu` device. What is left out is listed as not run; with
``--checks`` nothing is left out on a CPU that these tools may see, and every case gets them.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from llmkernel.cli.provenance import provenance
from llmkernel.errors import UsageError
from llmkernel.evaluation.report import OUTCOMES
from llmkernel.evaluation.tools import TOOLS, chosen_tools

Problems = Mapping[str, tuple[Callable[..., Any], Callable[[], list[Any]]]]

_NOTE = re.compile(r"// (rogue|honest): (.*)")
_KEYS = {"problem", "kind", "outcome", "cpu", "cuda", "device", "needs", "cpu-needs", "why"}
_PROBLEMS_FILE = "problems.py"
# An endless loop costs its time-out once for each run; nothing else may be cut short on a slow machine.
_ENDLESS_SECONDS = 1.0
_SECONDS = 30.0


@dataclass(frozen=True)
class Case:
    """One kernel of the gallery.

    Attributes
    ----------
    name : str
        The file's stem.
    is_honest : bool
    problem : str
        Key of the gallery's problems.
    kind : str
        What it does wrong, or why it is awkward: one word.
    why : str
    outcomes : frozenset of str
        Outcomes that count as right on the device at hand.
    tools : tuple of str
        Tools that the case is about.
    skipped : str
        Why it is not run on that device; empty where it is.
    source : str
    """

    name: str
    is_honest: bool
    problem: str
    kind: str
    why: str
    outcomes: frozenset[str]
    tools: tuple[str, ...]
    skipped: str
    source: str


@dataclass(frozen=True)
class Result:
    """What the judge said of one case; `missing` says why a tool that the case is about did not run."""

    case: Case
    outcome: str
    headline: str
    seconds: float
    missing: str = ""

    @property
    def is_right(self) -> bool:
        """Whether the outcome is one that the note names."""
        return self.outcome in self.case.outcomes

    @property
    def is_caught(self) -> bool:
        """Whether a rogue did not pass."""
        return not self.case.is_honest and self.outcome != "passed"


@dataclass
class Score:
    """Results of a whole gallery on one device."""

    device: str
    results: list[Result] = field(default_factory=list)
    not_run: list[Case] = field(default_factory=list)

    @property
    def rogues(self) -> list[Result]:
        """Results of kernels that must not pass."""
        return [r for r in self.results if not r.case.is_honest]

    @property
    def honest(self) -> list[Result]:
        """Results of kernels that must pass."""
        return [r for r in self.results if r.case.is_honest]

    @property
    def misses(self) -> list[Result]:
        """Survivors, rogues with another outcome, and false alarms."""
        return [r for r in self.results if not r.is_right]

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-able data."""
        rogues, honest = self.rogues, self.honest
        return {
            "device": self.device,
            "rogues": len(rogues),
            "caught": sum(r.is_caught for r in rogues),
            "right_outcome": sum(r.is_right for r in rogues),
            "honest": len(honest),
            "false_alarms": sum(not r.is_right for r in honest),
            "seconds": round(sum(r.seconds for r in self.results), 2),
            "not_run": {c.name: c.skipped for c in self.not_run},
            "cases": [
                {
                    "name": r.case.name,
                    "kind": r.case.kind,
                    "expected": sorted(r.case.outcomes),
                    "got": r.outcome,
                    "is_right": r.is_right,
                    "headline": r.headline,
                    "seconds": round(r.seconds, 3),
                }
                for r in self.results
            ],
        }


def read_case(path: Path, device: str, checks: Sequence[str] = ()) -> Case:
    """Read one file and its note; `checks` names tools that every case gets.

    Raises
    ------
    llmkernel.errors.UsageError
        For a file without a note, and for a note that cannot be understood.
    """
    source = path.read_text(encoding="utf-8")
    match = _NOTE.fullmatch(source.partition("\n")[0].rstrip())
    note = {}
    if match:
        pairs = (part.partition("=") for part in match[2].split("; "))
        note = {key.strip(): value.strip() for key, _, value in pairs}
    missing = {"problem", "kind", "why"} - note.keys()
    if not match or missing or note.keys() - _KEYS:
        raise _note_error(path, source)
    is_honest = match[1] == "honest"
    words = "passed" if is_honest else note.get(device, note.get("outcome", ""))
    outcomes = frozenset(words.split("|"))
    if not outcomes <= set(OUTCOMES) or (not is_honest and "passed" in outcomes):
        raise _note_error(path, source)
    only = note.get("device", "any")
    on_gpu, on_cpu = (tuple(note[key].split("|")) if key in note else () for key in ("needs", "cpu-needs"))
    if not {*on_gpu, *on_cpu} <= set(TOOLS):
        raise _note_error(path, source)
    skipped = f"{only} only" if only not in ("any", device) else ""
    tools = on_cpu if device == "cpu" else on_gpu
    if device == "cpu" and on_gpu and not on_cpu and device not in note and not set(on_gpu) <= set(checks):
        skipped = f"needs {', '.join(on_gpu)}"
    return Case(
        path.stem, is_honest, note["problem"], note["kind"], note["why"], outcomes, tools, skipped, source
    )


def _note_error(path: Path, source: str) -> UsageError:
    return UsageError(
        f"{path.name} has no note that can be understood.",
        rule="the first line is `// rogue: problem=…; kind=…; outcome=…; why=…` or `// honest: problem=…; kind=…; why=…`",
        received=source.partition("\n")[0][:200],
        next_step="See the module llmkernel.cli.gallery for the words.",
    )


def default_directory() -> Path:
    """Return the gallery of the source tree.

    Raises
    ------
    llmkernel.errors.UsageError
        Outside of a source tree.
    """
    directory = Path(__file__).resolve().parents[2] / "tests" / "rogues"
    if not (directory / _PROBLEMS_FILE).is_file():
        raise UsageError(
            "There is no gallery here.",
            rule="the gallery lies in tests/rogues of the source tree, and is not part of an installed package",
            received=str(directory),
            next_step="Clone the repository, or name a folder: `llmkernel verify --gallery DIR`.",
        )
    return directory


def load_gallery(
    directory: Path, device: str, only: str = "", checks: Sequence[str] = ()
) -> tuple[list[Case], Problems]:
    """Return the cases whose name, kind or problem contains `only`, and the problems; see `read_case`.

    Raises
    ------
    llmkernel.errors.UsageError
        For a folder that holds no gallery, or a case that names an unknown problem.
    """
    from llmkernel.cli.loading import load_module

    if not (directory / _PROBLEMS_FILE).is_file():
        raise UsageError(
            f"{directory} holds no gallery.",
            rule=f"a gallery is a folder of .cu files and a {_PROBLEMS_FILE}",
            received=str(directory),
            next_step="Leave DIR out for the gallery of the source tree.",
        )
    problems: Problems = load_module(str(directory / _PROBLEMS_FILE), "--gallery").PROBLEMS
    cases = [read_case(p, device, checks) for p in sorted(directory.rglob("*.cu"))]
    for case in cases:
        if case.problem not in problems:
            raise UsageError(
                f"{case.name}.cu names a problem that {_PROBLEMS_FILE} does not have.",
                received=case.problem,
                next_step="Known: " + ", ".join(sorted(problems)),
            )
    chosen = [c for c in cases if any(only in text for text in (c.name, c.kind, c.problem))]
    if not chosen:
        raise UsageError(
            f"No case of the gallery contains {only!r}." if only else f"{directory} holds no .cu file.",
            next_step="Kinds: " + ", ".join(sorted({c.kind for c in cases})),
        )
    return chosen, problems


def judge_case(case: Case, problems: Problems, device: str, checks: Sequence[str] = ()) -> Result:
    """Put one case through full verification, with the tools of `checks` besides those that it is about."""
    from llmkernel.evaluation.evaluate import evaluate

    reference, inputs = problems[case.problem]
    limit = _ENDLESS_SECONDS if "timed_out" in case.outcomes else _SECONDS
    started = time.perf_counter()
    report = evaluate(
        case.source,
        reference,
        inputs(),
        device=device,
        level="full",
        timeout=limit,
        checks=(*case.tools, *checks),
    )
    asked = {f"compute-sanitizer {tool}" for tool in case.tools}
    unused = [c.summary for c in report.checks if c.name in asked and c.status == "not_run"]
    missing = unused[0] if unused and report.is_passed else ""
    return Result(case, report.outcome, report.headline, time.perf_counter() - started, missing)


def run_gallery(
    cases: Iterable[Case],
    problems: Problems,
    device: str,
    on_result: Callable[[Result], None] = lambda _: None,
    checks: Sequence[str] = (),
) -> Score:
    """Judge every case, one after the other; `checks` names tools to run over each."""
    score = Score(device)
    for case in cases:
        if case.skipped:
            score.not_run.append(case)
            continue
        result = judge_case(case, problems, device, checks)
        if result.missing:
            score.not_run.append(replace(case, skipped=result.missing))
            continue
        score.results.append(result)
        on_result(result)
    return score


def format_score(score: Score) -> str:
    """Return the score and every miss, as text."""
    data = score.to_dict()
    head = (
        f"gallery on {score.device}: {data['caught']} of {data['rogues']} rogues caught, "
        f"{data['right_outcome']} with the right outcome; {data['false_alarms']} false alarms "
        f"among {data['honest']} honest kernels; {data['seconds']:.0f} s"
    )
    lines = [head]
    for result in score.misses:
        case = result.case
        word = "false alarm" if case.is_honest else "wrong outcome" if result.is_caught else "SURVIVOR"
        expected = " or ".join(sorted(case.outcomes))
        lines.append(f"  {word}: {case.name} ({case.why})")
        lines.append(f"    expected {expected}, got {result.outcome}: {result.headline[:300]}")
    if score.not_run:
        lines.append("not run: " + ", ".join(f"{c.name} ({c.skipped})" for c in score.not_run))
    return "\n".join(lines)


def run(directory: str, device: str, only: str, json_file: str, checks: Sequence[str] = ()) -> int:
    """Run a gallery and print its score.

    Parameters
    ----------
    directory : str
        Empty for the source tree's own.
    device : str
        ``auto``, ``cuda`` or ``cpu``.
    only : str
        Part of a name, kind or problem.
    json_file : str
        Where to write the score; empty for nowhere.
    checks : sequence of str
        Tools to run over every case besides.

    Returns
    -------
    int
        0 where every rogue got its outcome and every honest kernel passed.
    """
    from llmkernel.evaluation.evaluate import choose_device

    where = Path(directory) if directory else default_directory()
    chosen = choose_device(device)
    tools = chosen_tools(checks)
    cases, problems = load_gallery(where, chosen, only, tools)

    def show(result: Result) -> None:
        mark = "ok  " if result.is_right else "MISS"
        print(f"{mark} {result.case.name}: {result.outcome} ({result.seconds:.2f} s)", flush=True)

    score = run_gallery(cases, problems, chosen, show, tools)
    print(format_score(score))
    if json_file:
        found = {**score.to_dict(), "checks": list(tools), **provenance(chosen)}
        Path(json_file).write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return 1 if score.misses else 0
