"""From what a runner reported, or how it died, to a `Fault` that names argument, element, thread and line."""

from __future__ import annotations

import re
import signal
from typing import Any

from llmkernel.devices.base import Fault
from llmkernel.devices.cpu.diagnostics import tidy
from llmkernel.devices.cpu.lines import source_line
from llmkernel.devices.cpu.memory import STACKS_BASE, BufferFile, Slot
from llmkernel.devices.cpu.process import Report, ReportType, RunnerResult
from llmkernel.devices.kills import fault_of_kill, is_kill
from llmkernel.devices.plan import LaunchPlan
from llmkernel.problem.dtypes import DTYPES

_STACKS_END = STACKS_BASE + (1 << 40)
_NULL_PAGE = 64 * 1024
# Marks a line that is not the source's (abi.h).
_HEADER_LINE = 1 << 31
# The kernel itself raised the signal: no address was at fault (si_code SI_KERNEL).
_SI_KERNEL = 0x80


class FaultReader:
    """Explains the end of one run.

    Parameters
    ----------
    plan : LaunchPlan
    buffers : BufferFile
    library : bytes
        The module, for its line table.
    timeout_seconds : float
    """

    def __init__(self, plan: LaunchPlan, buffers: BufferFile, library: bytes, timeout_seconds: float) -> None:
        self._plan = plan
        self._buffers = buffers
        self._library = library
        self._timeout = timeout_seconds

    def read(self, result: RunnerResult) -> Fault | None:
        """Return the fault of a run, or None where it ended well."""
        base = next((r.address for r in result.reports if r.type == ReportType.LOADED), 0)
        for report in result.reports:
            if report.type not in (ReportType.LOADED, ReportType.DONE):
                return self._from_report(report, base)
        if result.was_killed:
            return self._fault(None, "timeout", self._timeout_text())
        if result.exit_code == -signal.SIGSYS:
            return self._fault(None, "sandbox", "The kernel made a system call, which a kernel may not.")
        if is_kill(result.exit_code):
            fault = fault_of_kill("The run", result.exit_code, result.kills_before)
            return self._fault(None, fault.kind, fault.message, **fault.details)
        if result.exit_code != 0:
            ended = (
                f"signal {-result.exit_code}" if result.exit_code < 0 else f"exit status {result.exit_code}"
            )
            return self._fault(None, "worker_died", f"The run ended without a report ({ended}).")
        return None

    def overrun(self, slot: Slot, byte: int) -> Fault:
        """Return the fault for bytes that changed around a buffer."""
        details = self._element(slot, byte)
        what = f"wrote outside `{slot.name}`, at element {details['element']}"
        return Fault("illegal_address", f"A kernel {what}.", self._only_kernel(), details)

    # -- one report --

    def _from_report(self, report: Report, base: int) -> Fault:
        kind = report.type
        if kind == ReportType.SIGNAL:
            return self._from_signal(report, base)
        places = {"line": report.line, "other_line": report.other_line}
        details: dict[str, Any] = {name: line for name, line in places.items() if 0 < line < _HEADER_LINE}
        if kind == ReportType.DEADLOCK:
            return self._deadlock(report, details)
        if kind == ReportType.MISALIGNED:
            return self._misaligned(report, base, details)
        lines = f"{_place(report.line)} and {_place(report.other_line)}"
        match kind:
            case ReportType.TRAP:
                return self._fault(report, "trap", f"{report.text} at {_place(report.line)}.", **details)
            case ReportType.OUT_OF_MEMORY:
                return self._fault(report, "out_of_memory", f"{report.text}.")
            case ReportType.DIVERGENT_BARRIER:
                text = f"Threads of one block wait at different barriers, {lines}."
                return self._fault(report, "invalid_synchronization", text, **details)
            case ReportType.DIVERGENT_COLLECTIVE:
                text = f"Lanes of one warp meet in different warp functions, {lines}."
                return self._fault(report, "invalid_synchronization", text, **details)
            case ReportType.LANE_OUTSIDE_MASK:
                mask = f"0x{report.address:08x}"
                text = f"A lane calls the warp function of {_place(report.line)} with a mask, {mask}, that leaves it out."
                return self._fault(report, "invalid_synchronization", text, mask=report.address, **details)
            case ReportType.SHARED_OVERRUN:
                text = f"A kernel wrote {report.address} bytes past the end of its dynamic shared memory."
                at = {"byte_offset": report.address, "memory": "shared"}
                return self._fault(report, "illegal_address", text, **at)
        kind_of = "out_of_memory" if "failed to map segment" in report.text else "launch_failed"
        return self._fault(report, kind_of, f"{tidy(report.text) or 'The run could not start'}.")

    def _deadlock(self, report: Report, details: dict[str, Any]) -> Fault:
        parts = []
        if report.at_barrier:
            parts.append(f"{report.at_barrier} threads wait at the barrier of {_place(report.line)}")
        if report.at_collective:
            parts.append(f"{report.at_collective} at the warp function of {_place(report.other_line)}")
        if report.finished:
            parts.append(f"{report.finished} have returned")
        text = f"No thread of the block can go on: {', '.join(parts)}."
        counts = {
            "at_barrier": report.at_barrier,
            "at_collective": report.at_collective,
            "finished": report.finished,
        }
        return self._fault(report, "deadlock", text, **details, **counts)

    def _misaligned(self, report: Report, base: int, details: dict[str, Any]) -> Fault:
        line = details.get("line") or (source_line(self._library, report.pc - base) if base else 0)
        if line:
            details["line"] = line
        details["alignment"] = report.code
        what = "an address"
        slot = self._buffers.find(report.execution, report.address)
        if slot is not None:
            details |= self._element(slot, report.address - slot.payload_address)
            what = f"the address of element {details['element']} of `{slot.name}`"
        where = f" at line {line}" if line else ""
        text = f"A kernel accessed {_type_name(report.text)}{where} at {what}, which is not a multiple of {report.code}."
        return self._fault(report, "misaligned_address", text, **details)

    def _from_signal(self, report: Report, base: int) -> Fault:
        line = source_line(self._library, report.pc - base) if base else 0
        where = f" at line {line}" if line else ""
        details: dict[str, Any] = {"signal": report.signal}
        if line:
            details["line"] = line
        match report.signal:
            case signal.SIGALRM | signal.SIGXCPU:
                return self._fault(report, "timeout", self._timeout_text(report, line), **details)
            case signal.SIGSYS:
                details["system_call"] = report.address
                text = f"The kernel made system call {report.address}{where}, which a kernel may not."
                return self._fault(report, "sandbox", text, **details)
            case signal.SIGFPE:
                return self._fault(
                    report, "trap", f"An integer is divided by zero{where}.", cause="division", **details
                )
            case signal.SIGILL | signal.SIGTRAP:
                text = f"The kernel reached code that cannot be reached, or an invalid instruction{where}."
                return self._fault(report, "trap", text, **details)
            case signal.SIGABRT:
                return self._fault(
                    report, "out_of_memory", "The run was ended by its own C library.", **details
                )
        return self._from_address(report, where, details)

    def _from_address(self, report: Report, where: str, details: dict[str, Any]) -> Fault:
        address = report.address
        details["address"] = f"0x{address:x}"
        if report.code == _SI_KERNEL and address == 0:
            text = f"A kernel accessed a vector that is not aligned to its size{where}."
            return self._fault(report, "misaligned_address", text, **details)
        if STACKS_BASE <= address < _STACKS_END:
            text = f"A thread's local arrays or calls need more than its stack{where}."
            return self._fault(report, "stack_overflow", text, **details)
        if address < _NULL_PAGE:
            if report.heap_exhausted:
                text = f"A kernel used the null pointer that malloc gave it{where}: its heap was exhausted."
                return self._fault(report, "out_of_memory", text, **details)
            return self._fault(
                report, "illegal_address", f"A kernel accessed a null pointer{where}.", **details
            )
        slot = self._buffers.find(report.execution, address)
        if slot is None:
            text = f"A kernel accessed memory that belongs to no argument{where}."
            return self._fault(report, "illegal_address", text, **details)
        details |= self._element(slot, address - slot.payload_address)
        element, size = details["element"], details["size"]
        text = f"A kernel accessed element {element} of `{slot.name}`, which has {size}{where}."
        return self._fault(report, "illegal_address", text, **details)

    # -- parts --

    def _element(self, slot: Slot, byte: int) -> dict[str, Any]:
        buffer = self._plan.buffer(slot.name)
        itemsize = DTYPES[buffer.dtype].itemsize
        return {
            "argument": slot.name,
            "element": byte // itemsize,
            "byte_offset": byte,
            "size": slot.image.nbytes // itemsize,
        }

    def _fault(self, report: Report | None, kind: str, message: str, **details: Any) -> Fault:
        kernel = self._only_kernel()
        if report is not None:
            if report.launch < len(self._plan.launches):
                launch = self._plan.launches[report.launch]
                kernel = launch.kernel
                details["launch_line"] = launch.line
                if kind == "timeout":
                    x, y, z = launch.grid
                    details["blocks_done"], details["blocks"] = report.blocks_done, x * y * z
            if report.has_thread:
                details["block"] = list(report.block)
                details["thread"] = list(report.thread)
        return Fault(kind, message, kernel, details)

    def _only_kernel(self) -> str:
        kernels = self._plan.kernels()
        return kernels[0] if len(kernels) == 1 else ""

    def _timeout_text(self, report: Report | None = None, line: int = 0) -> str:
        text = f"The run was still going after {self._timeout:g} s"
        if report is not None and report.launch < len(self._plan.launches):
            x, y, z = self._plan.launches[report.launch].grid
            text += f": {report.blocks_done} of {x * y * z} blocks had ended"
            if line:
                text += f", one was at line {line}"
        return text + ". A loop that waits for another block or thread may never see it."


def _type_name(text: str) -> str:
    name = re.sub(r"\b(?:const|volatile|struct|union)\s+", "", tidy(text).strip("'"))
    return f"a `{name}`" if name else "a vector"


def _place(line: int) -> str:
    return f"line {line}" if line < _HEADER_LINE else f"line {line - _HEADER_LINE} of a header"
