"""Checked mode: one run of an instrumented build, and what is wrong with the accesses and barriers that it made.

The candidate is compiled a second time with ``-fsanitize=thread``, whose hooks the runner answers itself
(runtime/checked): every load and store is held against the bounds and the alignment of its array, against who has
written there, and against the accesses of other threads that no barrier, fence or atomic orders.
"""

from __future__ import annotations

import hashlib
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from llmkernel.devices.base import Bytes, ExecutionOptions, Fault, Image
from llmkernel.devices.cpu.build import build
from llmkernel.devices.cpu.faults import FaultReader
from llmkernel.devices.cpu.findings import FindingReader
from llmkernel.devices.cpu.job import Watch, encode_job
from llmkernel.devices.cpu.lines import line_table
from llmkernel.devices.cpu.memory import BufferFile, payload_bytes
from llmkernel.devices.cpu.process import run_runner
from llmkernel.devices.plan import LaunchPlan
from llmkernel.errors import CompileError, LLMKernelError

TIMEOUT_SECONDS = 20.0
# What is remembered of an array takes up to fifty times its size.
LARGEST_BYTES = 32 << 20

# The tool of compute-sanitizer that answers for each kind of finding.
TOOL_OF = {
    "out_of_bounds": "memcheck",
    "misaligned_address": "memcheck",
    "illegal_address": "memcheck",
    "uninitialised_read": "initcheck",
    "data_race": "racecheck",
    "invalid_synchronization": "synccheck",
    "deadlock": "synccheck",
}
_OUTCOME_OF = {
    "misaligned_address": "crashed",
    "illegal_address": "out_of_bounds",
    "deadlock": "invalid_synchronization",
}


# One run answers for all four tools.
_KNOWN: deque[tuple[Any, CheckedRun]] = deque(maxlen=4)


@dataclass(frozen=True)
class CheckedFinding:
    """One thing that a checked run found.

    Attributes
    ----------
    kind : str
        Key of `TOOL_OF`.
    message : str
        One sentence: the access, the element of the named argument or shared variable, lines, threads and blocks.
    kernel : str
        Name expression.
    details : dict
        JSON-able: ``line``, ``thread``, ``block``, ``argument`` or ``shared``, ``element``, for a race also ``other_line``,
        ``other_thread``, ``other_block``.
    """

    kind: str
    message: str
    kernel: str = ""
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def tool(self) -> str:
        """The tool that answers for it."""
        return TOOL_OF[self.kind]

    @property
    def outcome(self) -> str:
        """What it means for a report."""
        return _OUTCOME_OF.get(self.kind, self.kind)


@dataclass(frozen=True)
class CheckedRun:
    """What one checked run said.

    Attributes
    ----------
    findings : tuple of CheckedFinding
        In the order in which they were made.
    seconds : float
        Compilation included.
    problem : str
        Why the run says nothing of what it did not find; empty when it was complete.
    """

    findings: tuple[CheckedFinding, ...]
    seconds: float
    problem: str = ""


def run_checked(
    source: str,
    plan: LaunchPlan,
    payloads: Mapping[str, Bytes],
    *,
    seed: int = 0,
    timeout: float = TIMEOUT_SECONDS,
) -> CheckedRun:
    """Run `plan` once in checked mode; the same question again, as of another tool, gets the same answer.

    Parameters
    ----------
    payloads : mapping
        Bytes of every input and inout buffer.
    seed : int
        Of what unwritten memory holds.
    timeout : float
        Seconds for the run.
    """
    key = (
        source,
        plan,
        seed,
        hashlib.sha256(b"".join(payloads[n].tobytes() for n in sorted(payloads))).digest(),
    )
    for known, run in _KNOWN:
        if known == key:
            return run
    run = _run(source, plan, payloads, seed, timeout)
    _KNOWN.append((key, run))
    return run


def _run(
    source: str, plan: LaunchPlan, payloads: Mapping[str, Bytes], seed: int, timeout: float
) -> CheckedRun:
    begin = time.perf_counter()

    def ended(findings: tuple[CheckedFinding, ...] = (), problem: str = "") -> CheckedRun:
        return CheckedRun(findings, time.perf_counter() - begin, problem)

    if sum(payload_bytes(b) for b in plan.buffers) > LARGEST_BYTES:
        return ended(problem="the arrays are too large for an instrumented run")
    try:
        module = build(source, plan.kernels(), is_checked=True)
    except CompileError as error:
        detail = error.diagnostics[0].message if error.diagnostics else error.what
        return ended(problem=f"the instrumented build fails: {detail}")
    except LLMKernelError as error:
        return ended(problem=error.what)
    images = _images(plan, payloads, seed)
    options = ExecutionOptions(timeout_seconds=timeout, seed=seed)
    try:
        buffers = BufferFile(plan, [images])
    except (MemoryError, OSError) as error:
        return ended(problem=f"the arrays do not fit into memory: {error}")
    library = module.library.read_bytes()
    with buffers:
        watch = Watch(*line_table(library), buffers.slot_bytes)
        job = encode_job(module.library, plan, buffers.slots, options, watch)
        result = run_runner(module.runner, job, buffers.file, 2 * timeout)
        reader = FindingReader(plan, buffers, library)
        found = [CheckedFinding(*parts) for r in result.reports if (parts := reader.read(r)) is not None]
        fault = FaultReader(plan, buffers, library, timeout).read(
            replace(result, reports=[r for r in result.reports if not reader.is_finding(r)])
        )
    if fault is not None and fault.kind in TOOL_OF and not _is_explained(fault, found):
        found.append(CheckedFinding(fault.kind, fault.message, fault.kernel, fault.details))
    is_complete = fault is None or fault.kind in TOOL_OF
    return ended(tuple(found), "" if is_complete or fault is None else fault.message.rstrip("."))


def _is_explained(fault: Fault, found: list[CheckedFinding]) -> bool:
    """Whether the access that ended the run was already reported, before it was made."""
    kind = {"illegal_address": "out_of_bounds"}.get(fault.kind, fault.kind)
    return kind in ("out_of_bounds", "misaligned_address") and any(f.kind == kind for f in found)


def _images(plan: LaunchPlan, payloads: Mapping[str, Bytes], seed: int) -> dict[str, Image]:
    random = np.random.default_rng(seed)
    images = {}
    for buffer in plan.buffers:
        given = payloads.get(buffer.name)
        data = (
            random.integers(0, 256, payload_bytes(buffer), np.uint8)
            if given is None
            else np.array(given, np.uint8).reshape(-1)
        )
        images[buffer.name] = Image(data, 0, data.nbytes)
    return images
