"""`python -m tests.soak --evaluations 500 --seed 1`: a soak, and a summary of it as JSON."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from pathlib import Path
from typing import Any

from tests.soak.run import soak


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--evaluations", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--kernel", action="store_true", help="through a real Jupyter kernel")
    parser.add_argument("--only", action="append", help="a step by name; may be given more than once")
    parser.add_argument("--output", type=Path, help="a file for the summary")
    parser.add_argument("--seconds", type=float, help="draw no more steps once this time is over")
    parser.add_argument("--quick", action="store_true", help="leave out what only a long soak needs")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    # A shell that starts it in the background has it ignore the signal that half of the steps send.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    listener = (lambda line: print(line, file=sys.stderr, flush=True)) if options.verbose else None
    if options.kernel:
        from tests.soak.kernel import soak_kernel

        summary = soak_kernel(options.evaluations, options.seed, options.device, listener)
        return _finish(summary, options.output)
    summary = soak(
        options.evaluations,
        options.seed,
        options.device,
        only=options.only,
        is_quick=options.quick,
        seconds=options.seconds,
        listener=listener,
    )
    return _finish(summary, options.output)


def _finish(summary: dict[str, Any], output: Path | None) -> int:
    text = json.dumps(summary, indent=2) + "\n"
    if output is not None:
        output.write_text(text)
    print(text)
    return 1 if summary["violations"] else 0


if __name__ == "__main__":
    sys.exit(main())
