"""The job of one runner process, in the layout that runtime/main.cpp reads."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from llmkernel.devices.base import ExecutionOptions
from llmkernel.devices.cpu.build import entry_symbol
from llmkernel.devices.cpu.memory import SLOTS_BASE, STACKS_BASE, Slot, payload_bytes
from llmkernel.devices.plan import KernelLaunch, LaunchPlan, PointerArgument, ScalarArgument
from llmkernel.errors import LaunchError
from llmkernel.problem.dtypes import DTYPES

MAX_WORKERS = 8
MAX_ARGUMENTS = 256
_ORDERS = {"forward": 0, "reverse": 1, "random": 2}
_STACK_BYTES = 256 * 1024
_STACKS_PER_WORKER = 1025
_HEAP_BYTES = 2 << 30
_MASK = (1 << 64) - 1
# A cell of 48 bytes for each byte where elements are that small, and a byte that says whether it was written.
_SHADOW_FACTOR = 49
_SHARED_BYTES = 2 * 227 * 1024
_ORDER_BYTES = 512 << 20


@dataclass
class _Writer:
    data: bytearray

    def numbers(self, *values: int) -> None:
        self.data += struct.pack(f"<{len(values)}Q", *values)

    def bytes(self, value: bytes) -> None:
        self.numbers(len(value))
        self.data += value + bytes(-len(value) % 8)

    def text(self, value: str) -> None:
        self.bytes(value.encode() + b"\0")


@dataclass(frozen=True)
class Watch:
    """What the runner needs for checked mode.

    Attributes
    ----------
    code_begin : int
        Address of the module's code, from its base.
    lines : numpy.ndarray
        (bytes of code,) uint16: the line of the `.cu` file; 0 for code of headers.
    slot_bytes : int
        Distance of the buffers' slots.
    """

    code_begin: int
    lines: npt.NDArray[np.uint16]
    slot_bytes: int

    def memory_bytes(self, plan: LaunchPlan) -> int:
        """Return a bound of what is remembered of the plan's arrays and of shared memory."""
        arrays = sum(payload_bytes(b) for b in plan.buffers)
        return _SHADOW_FACTOR * (arrays + MAX_WORKERS * _SHARED_BYTES) + _ORDER_BYTES


def encode_job(
    library: Path,
    plan: LaunchPlan,
    slots: Sequence[Sequence[Slot]],
    options: ExecutionOptions,
    watch: Watch | None = None,
) -> bytes:
    """Return the job that executes `plan` once for each row of `slots`; in checked mode where there is a `watch`."""
    blocks = max((_count(launch.grid) for launch in plan.launches), default=1)
    workers = min(MAX_WORKERS, blocks)
    stacks = workers * _STACKS_PER_WORKER * _STACK_BYTES
    shared = sum(slot.mapped_bytes for row in slots for slot in row)
    out = _Writer(bytearray())
    out.text(str(library))
    out.numbers(
        max(int(options.timeout_seconds * 1e6), 1), _ORDERS[options.thread_order], options.seed & _MASK
    )
    # Zero means that shared memory is left alone.
    out.numbers((options.seed * 2 + 1) & _MASK if options.dirties_shared else 0)
    out.numbers(workers, STACKS_BASE)
    shadow = watch.memory_bytes(plan) if watch else 0
    # Address space, private memory, processor seconds: generous, so that only runaways meet them.
    out.numbers(
        shared + stacks + 2 * _HEAP_BYTES + shadow,
        stacks + _HEAP_BYTES + shadow,
        int(options.timeout_seconds * len(slots) * MAX_WORKERS) + 2,
    )
    out.numbers(len(slots), len(plan.buffers), len(plan.launches))
    index = {buffer.name: i for i, buffer in enumerate(plan.buffers)}
    for launch in plan.launches:
        _encode_launch(out, launch, plan, index)
    for row in slots:
        for slot in row:
            out.numbers(slot.address, slot.file_offset, slot.mapped_bytes, slot.payload_address)
    out.numbers(watch is not None)
    if watch:
        _encode_watch(out, watch, plan, slots[0])
    return bytes(out.data)


def _encode_watch(out: _Writer, watch: Watch, plan: LaunchPlan, slots: Sequence[Slot]) -> None:
    out.numbers(watch.code_begin, len(watch.lines))
    out.bytes(watch.lines.tobytes())
    out.numbers(SLOTS_BASE, watch.slot_bytes)
    for buffer, slot in zip(plan.buffers, slots, strict=True):
        is_initialised = buffer.is_zeroed or buffer.role in ("input", "inout")
        out.numbers(
            slot.payload_address, slot.image.nbytes, DTYPES[buffer.dtype].itemsize, int(is_initialised)
        )


def _encode_launch(out: _Writer, launch: KernelLaunch, plan: LaunchPlan, index: dict[str, int]) -> None:
    out.text(entry_symbol(launch.kernel))
    out.numbers(*launch.grid, *launch.block, launch.shared_bytes, len(launch.arguments))
    for argument in launch.arguments:
        if isinstance(argument, PointerArgument):
            itemsize = DTYPES[plan.buffer(argument.buffer).dtype].itemsize
            out.numbers(1, index[argument.buffer], (argument.offset * itemsize) & _MASK)
        elif isinstance(argument, ScalarArgument):
            value = np.asarray(argument.value).astype(DTYPES[argument.dtype].numpy).tobytes()
            out.numbers(0, len(value))
            out.bytes(value)
        else:
            raise LaunchError(
                "A launch passes a tensor map, which the cpu device does not have.",
                line=launch.line,
                rule="TMA needs the cuda device; limits.supports_tma is False here.",
                received=launch.kernel,
                next_step="Guard the branch with tma_ok(...) and give another for devices without TMA.",
            )


def _count(size: tuple[int, int, int]) -> int:
    return size[0] * size[1] * size[2]
