"""From the reports of a checked run to sentences with arguments, elements, lines, threads and blocks."""

from __future__ import annotations

from typing import Any

from llmkernel.devices.cpu.elf import read_elf, variable_at
from llmkernel.devices.cpu.memory import BufferFile
from llmkernel.devices.cpu.process import Report, ReportType
from llmkernel.devices.plan import LaunchPlan
from llmkernel.problem.dtypes import DTYPES

# Bits of an access, and what memory it is in (runtime/checked/shadow.h).
_WRITE, _ATOMIC, _VOLATILE = 1, 2, 4
_GLOBAL, _SHARED_VARIABLE, _SHARED_DYNAMIC, _SHARED_OF_MODULE, _MODULE = range(5)
_KINDS = {
    ReportType.OUT_OF_BOUNDS: "out_of_bounds",
    ReportType.UNINITIALISED_READ: "uninitialised_read",
    ReportType.DATA_RACE: "data_race",
    ReportType.BARRIER_WITHOUT_LANES: "invalid_synchronization",
    ReportType.MISALIGNED_ELEMENT: "misaligned_address",
}


class FindingReader:
    """Explains the findings of one checked run.

    Parameters
    ----------
    plan : LaunchPlan
    buffers : BufferFile
    library : bytes
        The instrumented module, for the names of its variables.
    """

    def __init__(self, plan: LaunchPlan, buffers: BufferFile, library: bytes) -> None:
        self._plan = plan
        self._buffers = buffers
        self._elf = read_elf(library)

    @staticmethod
    def is_finding(report: Report) -> bool:
        """Whether a report is a finding, after which the run went on."""
        return report.type in _KINDS

    def read(self, report: Report) -> tuple[str, str, str, dict[str, Any]] | None:
        """Return kind, sentence, kernel and details of a finding; None for any other report."""
        if report.type not in _KINDS:
            return None
        kind = _KINDS[ReportType(report.type)]
        details: dict[str, Any] = {
            "line": report.line,
            "thread": list(report.thread),
            "block": list(report.block),
        }
        if kind == "invalid_synchronization":
            details |= {"at_barrier": report.at_barrier, "finished": report.finished}
            text = (
                f"the barrier{_line(report.line)} is reached by {report.at_barrier} lanes of a warp of block "
                f"{_triple(report.block)} whose other {report.finished} have returned"
            )
        else:
            text = self._access(kind, report, details)
        launches = self._plan.launches
        kernel = launches[report.launch].kernel if report.launch < len(launches) else ""
        return kind, f"{text[0].upper()}{text[1:]}.", kernel, details

    def _access(self, kind: str, report: Report, details: dict[str, Any]) -> str:
        """Return an access in words, and add it to `details`."""
        place, where = self._place(report)
        by = f"by {_who(report.thread, report.block)}{_line(report.line)}"
        if kind == "misaligned_address":
            details |= {**where, "alignment": report.code}
            return f"{place} is accessed {by} as a vector whose address must be a multiple of {report.code}"
        details |= {**where, "access": _access(report.kind)}
        if kind == "uninitialised_read":
            return f"{place} is read {by} before anything was written there"
        if kind == "out_of_bounds":
            return f"{place} is {_past(report.kind)} {by}, outside of the {details['size']} that there are"
        details |= {
            "other_line": report.other_line,
            "other_thread": list(report.other_thread),
            "other_block": list(report.other_block),
            "other_access": _access(report.other_kind),
        }
        other = f"by {_who(report.other_thread, report.other_block)}{_line(report.other_line)}"
        both = f"{_past(report.other_kind)} {other} and {_past(report.kind)} {by}"
        return f"{place} is {both}, and {self._missing(report)}"

    def _missing(self, report: Report) -> str:
        """Return what would have ordered the two accesses."""
        if report.block != report.other_block:
            return "nothing orders the two blocks: an atomic with __threadfence() would"
        launches = self._plan.launches
        width, height, _ = launches[report.launch].block if report.launch < len(launches) else (1, 1, 1)
        one, other = (x + width * (y + height * z) for x, y, z in (report.thread, report.other_thread))
        barrier = "__syncwarp() or __syncthreads()" if one // 32 == other // 32 else "__syncthreads()"
        return f"no {barrier} is between"

    def _place(self, report: Report) -> tuple[str, dict[str, Any]]:
        """Return the element in words and as details."""
        slot = self._buffers.find(0, report.address) if report.space == _GLOBAL else None
        if slot is not None:
            itemsize = DTYPES[self._plan.buffer(slot.name).dtype].itemsize
            element = (report.address - slot.payload_address) // itemsize
            details = {"argument": slot.name, "element": element, "size": slot.image.nbytes // itemsize}
            return f"element {element} of `{slot.name}`", details
        offset = report.address - (1 << 64) if report.address >> 63 else report.address
        if report.space == _SHARED_VARIABLE:
            width = max(report.element_bytes, 1)  # what the process says may be forged
            element, size = offset // width, report.size // width
            details = {"shared": report.text, "element": element, "size": size}
            return f"element {element} of the shared `{report.text}`", details
        return self._unnamed(report, offset)

    def _unnamed(self, report: Report, offset: int) -> tuple[str, dict[str, Any]]:
        # Its declared type is not known: it is counted in what was accessed.
        width = max(report.bytes, 1)
        if report.space == _SHARED_DYNAMIC:
            found = None
        else:
            is_shared = report.space == _SHARED_OF_MODULE
            found = variable_at(self._elf, offset, is_thread_local=is_shared)
        if found is not None:
            key = "variable" if report.space == _MODULE else "shared"
            at = (offset + (self._elf.writable_begin if key == "variable" else 0) - found.begin) // width
            details = {key: found.name, "element": at, "size": found.nbytes // width}
            return f"element {at} of `{found.name}`", details
        details = {"shared": "", "element": offset // width, "size": report.size // width}
        return f"element {offset // width} of the dynamic shared memory, counted in {width} bytes,", details


def _access(kind: int) -> str:
    name = "write" if kind & _WRITE else "read"
    if kind & _ATOMIC:
        return f"atomic {name}"
    return f"volatile {name}" if kind & _VOLATILE else name


def _past(kind: int) -> str:
    if kind & _ATOMIC:
        return "changed by an atomic" if kind & _WRITE else "read by an atomic"
    return "written" if kind & _WRITE else "read"


def _who(thread: tuple[int, int, int], block: tuple[int, int, int]) -> str:
    return f"thread {_triple(thread)} of block {_triple(block)}"


def _triple(index: tuple[int, int, int]) -> str:
    return f"({', '.join(str(i) for i in index)})"


def _line(line: int) -> str:
    return f" at line {line}" if line else ""
