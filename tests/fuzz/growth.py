"""`python -m tests.fuzz.growth`: how the work of each parser grows with its input, up to a megabyte.

Work is processor time; what is reported is the exponent between the largest sizes: 1 is linear, 2 is quadratic. The suite
has only what was quadratic once (tests/fuzz/test_parsers.py) and what nearly matches a secret: this is for looking.
"""

from __future__ import annotations

import argparse
import itertools
import math
import signal
import sys
import time
from collections.abc import Iterator

from tests.fuzz.targets import Target, all_targets

LARGEST = 1 << 20
SLOW_SECONDS = 1.5
LIMIT_SECONDS = 20


def _shapes_of(target: Target) -> Iterator[tuple[str, str, str]]:
    """Yield a beginning, a piece to be repeated, and an end."""
    pieces = [w for w in target.words if len(w) < 40]
    for piece in pieces:
        yield "", piece, ""
        yield "", piece, "\x00"
    for first, second in itertools.product(pieces[:: max(1, len(pieces) // 7)], repeat=2):
        yield "", first + second, ""
        yield first, second, ""
    for example in target.examples[:2]:
        yield example, "\n", ""
        yield "", example, ""


def _seconds(target: Target, text: str) -> float:
    def stop(*_: object) -> None:
        raise TimeoutError

    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, LIMIT_SECONDS)
    started = time.process_time()
    try:
        target(text)
        signal.setitimer(signal.ITIMER_PROF, 0)
    except TimeoutError:
        return math.inf
    return time.process_time() - started


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", nargs="*")
    parser.add_argument("--largest", type=int, default=LARGEST)
    options = parser.parse_args()
    found = 0
    for target in all_targets():
        if target.is_binary or (options.target and target.name not in options.target):
            continue
        worst = 0.0
        for begin, piece, end in _shapes_of(target):
            sizes = [options.largest >> k for k in (4, 0)]
            times: list[float] = []
            for size in sizes:
                times.append(_seconds(target, begin + piece * (size // len(piece)) + end))
                # Small inputs that are quick even if the work were quadratic need no larger ones.
                if times[-1] == math.inf or times[-1] * (options.largest / size) ** 2 < SLOW_SECONDS / 4:
                    break
            worst = max(worst, times[-1])
            exponent = (
                math.log(max(times[-1], 1e-4) / max(times[0], 1e-4), sizes[len(times) - 1] / sizes[0])
                if len(times) > 1
                else 0
            )
            if times[-1] > SLOW_SECONDS and exponent > 1.25:
                found += 1
                shown = " ".join(f"{t:.3f}" for t in times)
                print(
                    f"{target.name}: {begin[:20]!r} + {piece[:30]!r} * n + {end!r}: {shown} s, exponent {exponent:.2f}",
                    flush=True,
                )
        print(f"{target.name}: longest {worst:.2f} s", flush=True)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
