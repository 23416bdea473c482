"""The job of one runner process, in the layout that runtime/main.cpp reads."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from llmkernel.devices.base import ExecutionOptions
from llmkernel.devices.cpu.build import entry_symbol
from llmkernel.devices.cpu.memory import STACKS_BASE, Slot
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


def encode_job(
    library: Path,
    plan: LaunchPlan,
    slots: Sequence[Sequence[Slot]],
    options: ExecutionOptions,
) -> bytes:
    """Return the job that executes `plan` once for each row of `slots`."""
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
    # Address space, private memory, processor seconds: generous, so that only runaways meet them.
    out.numbers(
        shared + stacks + 2 * _HEAP_BYTES,
        stacks + _HEAP_BYTES,
        int(options.timeout_seconds * len(slots) * MAX_WORKERS) + 2,
    )
    out.numbers(len(slots), len(plan.buffers), len(plan.launches))
    index = {buffer.name: i for i, buffer in enumerate(plan.buffers)}
    for launch in plan.launches:
        _encode_launch(out, launch, plan, index)
    for row in slots:
        for slot in row:
            out.numbers(slot.address, slot.file_offset, slot.mapped_bytes, slot.payload_address)
    return bytes(out.data)


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
