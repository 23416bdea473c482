"""``llmkernel doctor``: what works on this machine, and the next step for what does not."""

from __future__ import annotations

import argparse
import json
import shutil
from dataclasses import asdict

from llmkernel import __version__
from llmkernel.cli import doctor_checks as checks
from llmkernel.cli.doctor_probe import PROBES
from llmkernel.display.text import format_table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``llmkernel doctor``."""
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")


def run(arguments: argparse.Namespace) -> int:
    """Print the findings.

    Returns
    -------
    int
        0 where the main job can run on some device, else 1.
    """
    findings, usable = examine()
    if arguments.json:
        data = {
            "version": __version__,
            "devices": usable,
            "findings": [asdict(finding) for finding in findings],
        }
        print(json.dumps(data, indent=2, ensure_ascii=False))
        return 0 if usable else 1
    print(f"llmkernel {__version__}\n")
    rows = [(f.name, f.verdict, f.summary) for f in findings]
    width = min(shutil.get_terminal_size((100, 24)).columns, 140)
    print(format_table(rows, ("what", "verdict", "found"), width=width))
    steps = [(f.name, f.next_step) for f in findings if f.next_step]
    if steps:
        print("\n" + format_table(steps, ("what", "next step"), width=width))
    if usable:
        print(f"\nKernels can be generated and verified here, on: {', '.join(usable)}.")
    else:
        print("\nNo device can be used here yet: see the next steps above.")
    return 0 if usable else 1


def examine() -> tuple[list[checks.Finding], list[str]]:
    """Return all findings, and the names of the devices on which the main job can run."""
    probed = checks.run_probes(tuple(PROBES))
    devices, usable = checks.check_devices(probed["devices"])
    findings = [
        *checks.check_python(),
        *devices,
        *checks.check_gpu(probed),
        *checks.check_compilers(needed=not usable),
        *checks.check_sandbox(probed["sandbox"]),
        *checks.check_redaction(),
        *checks.check_providers(probed["keys"]),
        *checks.check_jupyter(),
        *checks.check_directories(),
    ]
    return findings, usable
