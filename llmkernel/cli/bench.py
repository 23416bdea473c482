"""`llmkernel bench`: every figure that the project publishes, as JSON with device, date, commit and versions."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from llmkernel.cli.provenance import provenance

Row = dict[str, Any]
SUITES = ("start", "verdict", "crash", "replay", "call", "operators")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``llmkernel bench``."""
    parser.add_argument(
        "suites",
        nargs="*",
        default=list(SUITES),
        metavar="SUITE",
        help=f"any of {', '.join(SUITES)} (default: all)",
    )
    parser.add_argument("--device", choices=["auto", "cuda", "cpu"], default="auto")
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("docs/benchmarks"),
        help="folder of the JSON file (default: %(default)s)",
    )
    parser.add_argument(
        "--commit", default="", help="what is measured, where the source tree does not know it itself"
    )
    parser.add_argument(
        "--seconds", type=float, default=0.0, help="begin no further operator after this time"
    )
    parser.add_argument("--only", default="", help="operators whose name contains this word")


def run(arguments: argparse.Namespace) -> int:
    """Run suites, print a table for each and write one JSON file."""
    from llmkernel.errors import UsageError
    from llmkernel.evaluation.evaluate import choose_device

    unknown = [s for s in arguments.suites if s not in SUITES]
    if unknown:
        raise UsageError(
            f"There is no suite {unknown[0]!r}.",
            rule="suites are " + ", ".join(SUITES),
            received=" ".join(arguments.suites),
            next_step="Leave the names out to run all.",
        )
    device = choose_device(arguments.device)
    result = {**provenance(device, arguments.commit), "suites": {}}
    for name in arguments.suites:
        rows = _suite(name)(device, arguments)
        if rows:
            result["suites"][name] = rows
            print(_table(name, rows), flush=True)
    path = _write(result, arguments.output, device)
    print(f"\nWritten: {path}")
    return 0


def _suite(name: str) -> Callable[[str, argparse.Namespace], list[Row]]:
    from llmkernel.cli.benchmarks import calls, judging, operators, start

    suites: dict[str, Callable[[str, argparse.Namespace], list[Row]]] = {
        "start": start.start,
        "verdict": judging.verdict,
        "crash": judging.crash,
        "replay": judging.replay,
        "call": calls.call,
        "operators": operators.operators,
    }
    return suites[name]


def _table(name: str, rows: list[Row]) -> str:
    columns = list(dict.fromkeys(k for r in rows for k in r if not isinstance(r[k], dict | list)))
    cells = [[_cell(r.get(c)) for c in columns] for r in rows]
    widths = [max(len(c), *(len(r[i]) for r in cells)) for i, c in enumerate(columns)]
    lines = ["  ".join(c.ljust(w) for c, w in zip(columns, widths, strict=True))]
    lines += ["  ".join(v.ljust(w) for v, w in zip(r, widths, strict=True)) for r in cells]
    return f"\n{name}\n" + "\n".join("  " + line.rstrip() for line in lines)


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return "" if value is None else str(value)


def _write(result: dict[str, Any], folder: Path, device: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    name = (
        str(result["device"].get("name", device)).lower().replace(" ", "-").replace("(", "").replace(")", "")
    )
    path = folder / f"{result['date'][:10]}-{name}-{'-'.join(result['suites'])}.json"
    path.write_text(json.dumps(result, indent=2, sort_keys=True, default=str) + "\n", encoding="utf-8")
    return path
