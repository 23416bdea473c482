"""`python -m llmkernel.evaluation.worker DEVICE`: the worker's entry point.

The sandbox is entered before anything heavy is imported: the libraries then start their threads inside it.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from llmkernel.sandbox.enter import PARTS, Confinement, enter, start_no_more_programs
from llmkernel.sandbox.limits import die_with_parent
from llmkernel.sandbox.policy import Policy, worker_policy


def main() -> None:
    """Confine this process as its arguments say, then serve."""
    parser = argparse.ArgumentParser()
    parser.add_argument("device")
    parser.add_argument(
        "--scratch", type=Path, help="the worker's own directory; without one nothing is confined"
    )
    parser.add_argument("--without", choices=PARTS, action="append", default=[])
    options = parser.parse_args()
    die_with_parent()
    policy: Policy | None = None
    confinement = Confinement()
    if options.scratch is not None:
        policy = policy_of(options.device, options.scratch)
        confinement = enter(policy, without=options.without)

    from llmkernel.evaluation.worker.server import serve

    def close_the_door() -> None:
        if policy is not None:
            start_no_more_programs(policy, confinement)

    serve(options.device, confinement, close_the_door)


def policy_of(device: str, scratch: Path) -> Policy:
    """Return what the worker of a device may reach."""
    if device != "cpu":
        return worker_policy(scratch, starts_programs=False)
    from llmkernel.devices.cpu.cache import cache_directory

    return worker_policy(scratch, caches=[cache_directory()], starts_programs=True)


if __name__ == "__main__":
    main()
