"""A short soak; `python -m tests.soak --evaluations 500` is the long one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

STEPS = (
    "honest",
    "worker killed",
    "hang",
    "interrupted",
    "records on a full disk",
    "worker stopped",
    "interrupted while saving",
    "eats memory",
    "compiler or run killed",
    "interrupted at the start",
    "cache on a full disk",
    "in a fork",
)


@pytest.mark.skipif(sys.platform != "linux", reason="looks at processes through /proc")
def test_nothing_is_lost_or_left_over(tmp_path):
    summary = tmp_path / "summary.json"
    command = [sys.executable, "-m", "tests.soak", "--evaluations", str(len(STEPS)), "--seed", "2", "--quick"]
    command += [word for step in STEPS for word in ("--only", step)]
    # A process of its own: it counts its descriptors and threads, and takes signals.
    done = subprocess.run(
        [*command, "--output", str(summary)],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert summary.exists(), done.stderr
    found = json.loads(summary.read_text())
    assert found["violations"] == [], done.stderr
    assert found["evaluations"] + len(found["without"]) >= len(STEPS)
