"""compute-sanitizer: memcheck, racecheck, initcheck and synccheck over one small run of a plan.

The tools instrument the machine code, so they see what guard bands and repeats cannot: a read beyond an array, a race
that happened to end well, a read of memory that nobody wrote. Each takes a process of its own and about two seconds.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from llmkernel.devices.base import Bytes
from llmkernel.devices.cuda.diagnostics import SOURCE_NAME
from llmkernel.devices.cuda.sanitizer_run import MARK
from llmkernel.devices.cuda.tool_process import own_environment, run_command, write_job
from llmkernel.devices.plan import LaunchPlan
from llmkernel.problem.dtypes import DTYPES

TOOLS = ("memcheck", "initcheck", "racecheck", "synccheck")
TIMEOUT_SECONDS = 60.0
# An address farther away than this belongs to no array: a null or wild pointer.
_FAR_BYTES = 32 << 30

_PREFIX = re.compile(r"^=+ ?", re.MULTILINE)
_PLACE = re.compile(r"at (?P<kernel>[\w:~<>]+)?.*? in .*?(?P<file>[\w.]+\.cu):(?P<line>\d+)")
_THREAD = re.compile(r"by thread \((\d+),(\d+),(\d+)\) in block \((\d+),(\d+),(\d+)\)")
_ADDRESS = re.compile(r"(?:Address|Access (?:to|at)) (0x[0-9a-fA-F]+)")
_KINDS = (
    (re.compile(r"Invalid __(?:global|shared|local)__ (?:read|write|atomic)"), "out_of_bounds"),
    (re.compile(r"Uninitialized __global__ memory read"), "uninitialised_read"),
    (re.compile(r"(?:Error|Warning): (?:Race reported|Potential \w+ hazard)"), "data_race"),
    (
        re.compile(r"Barrier error|Invalid arguments? .*barrier|synccheck", re.IGNORECASE),
        "invalid_synchronization",
    ),
)
_MISALIGNED = re.compile(r"misaligned")
_WARNING = re.compile(r"^Warning: ")
_ACCESS = re.compile(r"\b(?P<kind>Read|Write|Atomic)\w* access\b(?P<place>.*)", re.IGNORECASE)
_OWN_PLACE = re.compile(rf"(?:^|[\s/]){re.escape(SOURCE_NAME)}:(?P<line>\d+)")


@dataclass(frozen=True)
class SanitizerFinding:
    """One error that a tool reported.

    Attributes
    ----------
    outcome : str
        ``out_of_bounds``, ``uninitialised_read``, ``data_race``, ``invalid_synchronization`` or ``crashed``.
    message : str
        One sentence.
    line : int
        1-based line of the `.cu` file; 0 when unknown.
    kernel : str
    argument : str
        Name of the nearest array; empty when unknown.
    element : int or None
        Index of the element that was touched, flat; negative in front of the array.
    thread, block : tuple of int or None
    lines : tuple of int
        Of a race: the lines of all its accesses; empty where one of them stands outside of the candidate.
    is_warning : bool
        racecheck takes it for something that the programmer may have meant: a hazard within one warp.
    """

    outcome: str
    message: str
    line: int = 0
    kernel: str = ""
    argument: str = ""
    element: int | None = None
    thread: tuple[int, int, int] | None = None
    block: tuple[int, int, int] | None = None
    lines: tuple[int, ...] = ()
    is_warning: bool = False


@dataclass(frozen=True)
class SanitizerRun:
    """What one tool said.

    Attributes
    ----------
    tool : str
    findings : tuple of SanitizerFinding
    seconds : float
    problem : str
        Why the tool itself did not do its work; empty when it did.
    """

    tool: str
    findings: tuple[SanitizerFinding, ...]
    seconds: float
    problem: str = ""


def find_sanitizer() -> str | None:
    """Return the path of compute-sanitizer, or None where it is not installed."""
    homes = [os.environ.get("CUDA_HOME", ""), os.environ.get("CUDA_PATH", ""), "/usr/local/cuda"]
    folders = [str(Path(h) / part) for h in homes if h for part in ("bin", "compute-sanitizer")]
    return shutil.which("compute-sanitizer") or shutil.which(
        "compute-sanitizer", path=os.pathsep.join(folders)
    )


def run_sanitizer(
    tool: str,
    source: str,
    plan: LaunchPlan,
    payloads: Mapping[str, Bytes],
    *,
    timeout: float = TIMEOUT_SECONDS,
    stop: threading.Event | None = None,
) -> SanitizerRun:
    """Run `plan` once under a tool, in a process of its own.

    Parameters
    ----------
    tool : str
        One of `TOOLS`.
    payloads : mapping
        Bytes of every input and inout buffer.
    stop : threading.Event, optional
        Ends it early once it is set.
    """
    program = find_sanitizer()
    if program is None:
        return SanitizerRun(tool, (), 0.0, "compute-sanitizer is not installed")
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="llmkernel-sanitizer-") as name:
        write_job(Path(name), source, plan, payloads)
        command = [program, "--tool", tool, "--print-limit", "20", "--error-exitcode", "86"]
        # Races between warps of one block; the tool also reports reads and writes that no barrier separates.
        command += ["--racecheck-report", "analysis"] if tool == "racecheck" else []
        # Allocations lie side by side: without a gap the first element beyond one is the first of the next.
        command += ["--padding", "512"] if tool == "memcheck" else []
        command += [sys.executable, "-m", "llmkernel.devices.cuda.sanitizer_run", name]
        log, problem = run_command(command, timeout, own_environment(Path(name)), stop=stop)
    findings = parse_log(log, plan)
    if not findings and not problem and "ERROR SUMMARY" not in log and "RACECHECK SUMMARY" not in log:
        problem = (log.strip().splitlines() or ["it printed nothing"])[-1][:200]
    return SanitizerRun(tool, findings, time.perf_counter() - started, "" if findings else problem)


def parse_log(log: str, plan: LaunchPlan) -> tuple[SanitizerFinding, ...]:
    """Read the errors of a tool's log.

    Parameters
    ----------
    log : str
        Output of the tool and of the process under it; any text is read without an error.
    plan : LaunchPlan
        Names and dtypes of the buffers whose addresses the process printed.
    """
    buffers = _buffers(log)
    findings = []
    lines = _PREFIX.sub("", log).splitlines()
    for at, line in enumerate(lines):
        outcome = next((o for pattern, o in _KINDS if pattern.search(line)), None)
        if outcome is None:
            continue
        block = [line]
        for following in lines[at + 1 : at + 12]:
            if not following.startswith("    "):
                break
            block.append(following)
        findings.append(_finding(outcome, block, buffers, plan))
    return tuple(findings)


def _finding(
    outcome: str, lines: list[str], buffers: dict[str, tuple[int, int]], plan: LaunchPlan
) -> SanitizerFinding:
    text = "\n".join(lines)
    place, thread, address = _PLACE.search(text), _THREAD.search(text), _ADDRESS.search(text)
    numbers = [int(n) for n in thread.groups()] if thread else []
    argument, element = ("", None)
    if address and outcome in ("out_of_bounds", "uninitialised_read") and "__shared__" not in lines[0]:
        argument, element = _nearest(int(address.group(1), 16), buffers, plan)
    if outcome == "out_of_bounds" and _MISALIGNED.search(text):
        outcome = "crashed"
    accesses = _accesses(lines) if outcome == "data_race" else []
    message = re.sub(r"^(?:Error|Warning): ", "", lines[0].strip()).rstrip(".")
    if accesses:
        places = [
            f"the {kind} on line {line}" if line else f"a {kind} in a header" for kind, line in accesses
        ]
        message = "Race between " + " and ".join(places)
    if argument:
        message += f", element {element} of `{argument}`"
    if place and not accesses:
        message += f", line {place['line']}"
    return SanitizerFinding(
        outcome,
        message + ".",
        line=int(place["line"]) if place else 0,
        kernel=(place["kernel"] or "") if place else "",
        argument=argument,
        element=element,
        thread=(numbers[0], numbers[1], numbers[2]) if numbers else None,
        block=(numbers[3], numbers[4], numbers[5]) if numbers else None,
        lines=tuple(line for _, line in accesses) if all(line for _, line in accesses) else (),
        is_warning=bool(_WARNING.match(lines[0])),
    )


def _accesses(lines: list[str]) -> list[tuple[str, int]]:
    """Return the accesses of a race as kind and line; line 0 outside of the candidate."""
    found = []
    for line in lines:
        access = _ACCESS.search(line)
        if access:
            own = _OWN_PLACE.search(access["place"])
            found.append((access["kind"].lower(), int(own["line"]) if own else 0))
    return found


def _buffers(log: str) -> dict[str, tuple[int, int]]:
    found = {}
    for line in log.splitlines():
        words = line.split()
        if len(words) == 4 and words[0] == MARK and words[2].isdigit() and words[3].isdigit():
            found[words[1]] = (int(words[2]), int(words[3]))
    return found


def _nearest(address: int, buffers: dict[str, tuple[int, int]], plan: LaunchPlan) -> tuple[str, int | None]:
    """Return the array nearest to an address, and which of its elements the address is."""
    known = {b.name: b for b in plan.buffers}

    def distance(name: str) -> int:
        start, size = buffers[name]
        return max(start - address, address - (start + size), 0)

    names = [n for n in buffers if n in known]
    if not names:
        return "", None
    name = min(names, key=distance)
    if distance(name) > _FAR_BYTES:
        return "", None
    return name, (address - buffers[name][0]) // DTYPES[known[name].dtype].itemsize
