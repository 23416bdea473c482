"""NVIDIA's tools run a process of their own over one plan: how the plan gets there, and what the tool printed."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from llmkernel.devices.base import Bytes
from llmkernel.devices.plan import LaunchPlan, plan_from_dict
from llmkernel.sandbox.enter import enter
from llmkernel.sandbox.environment import needed_only, with_package
from llmkernel.sandbox.policy import worker_policy

MAX_LOG_BYTES = 1 << 20
_POLL_SECONDS = 0.25


def write_job(folder: Path, source: str, plan: LaunchPlan, payloads: Mapping[str, Bytes]) -> None:
    """Write a plan, its source and the bytes of its inputs into `folder`."""
    job = {"source": source, "plan": plan.to_dict()}
    (folder / "job.json").write_text(json.dumps(job), encoding="utf-8")
    for buffer, payload in payloads.items():
        (folder / f"{buffer}.bin").write_bytes(payload.tobytes())


def read_job(folder: Path) -> tuple[str, LaunchPlan]:
    """Return the source and the plan that `write_job` wrote."""
    job = json.loads((folder / "job.json").read_text(encoding="utf-8"))
    return job["source"], plan_from_dict(job["plan"])


def confine(folder: Path) -> None:
    """Enter the worker's sandbox, as far as the tool leaves that possible.

    It starts threads of its own before, and Landlock cannot be entered then.
    """
    enter(worker_policy(folder, starts_programs=False))


def own_environment(folder: Path) -> dict[str, str]:
    """Return variables that keep in `folder` what a tool's process writes: nobody else believes what it compiled."""
    return {
        "TMPDIR": str(folder),
        "LLMKERNEL_CACHE_DIR": str(folder / "cache"),
        "CUPY_CACHE_DIR": str(folder / "cupy"),
        "CUDA_CACHE_PATH": str(folder / "nv"),
    }


def run_command(
    command: Sequence[str],
    timeout: float,
    environment: Mapping[str, str] | None = None,
    stop: threading.Event | None = None,
) -> tuple[str, str]:
    """Run a tool to its end, and end it with everything that it started when its time is over.

    Parameters
    ----------
    command : sequence of str
    timeout : float
        Seconds.
    environment : mapping, optional
        Variables on top of what a process that runs untrusted code is given.
    stop : threading.Event, optional
        Ends it early once it is set.

    Returns
    -------
    log : str
        What was printed, standard error included; at most 1 MiB.
    problem : str
        Why there is none; empty when the tool ended by itself.
    """
    # The tool runs a candidate: it is given no key of the notebook's.
    variables = {**with_package(needed_only()), **(environment or {})}
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=variables,
        start_new_session=True,
    )
    limit = time.monotonic() + timeout
    try:
        while True:
            try:
                out, _ = process.communicate(timeout=_POLL_SECONDS)
            except subprocess.TimeoutExpired:
                if stop is not None and stop.is_set():
                    return "", "it was stopped"
                if time.monotonic() >= limit:
                    return "", f"it was still running after {timeout:g} s"
            else:
                return out[:MAX_LOG_BYTES].decode(errors="replace"), ""
    finally:
        if process.poll() is None:
            with contextlib.suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
