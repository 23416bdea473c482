"""Where the buffers of an execution lie in the runner's memory.

Every buffer has a slot of its own, far from the others. Its last byte stands as close to unmapped memory as
its alignment lets it, so that a kernel that runs over the end faults where it does so.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from llmkernel.devices.base import Bytes, Image
from llmkernel.devices.plan import Buffer, LaunchPlan
from llmkernel.problem.dtypes import DTYPES

PAGE = 4096
ALIGNMENT = 256
# Far below where the system puts programs and libraries, and wide enough for any buffer.
SLOTS_BASE = 0x1000_0000_0000
SLOTS_BYTES = 1 << 46
MAX_SLOT_BYTES = 1 << 35
STACKS_BASE = 0x0800_0000_0000


@dataclass(frozen=True)
class Slot:
    """One buffer of one execution, in the file and in the runner's memory.

    Attributes
    ----------
    name : str
        The buffer's.
    address : int
        Where its pages begin in the runner.
    file_offset, mapped_bytes : int
        Its pages in the file; whole pages.
    image_at : int
        Where the image begins, from the first page.
    image : Image
    """

    name: str
    address: int
    file_offset: int
    mapped_bytes: int
    image_at: int
    image: Image

    @property
    def payload_address(self) -> int:
        """Address that kernels are given."""
        return self.address + self.image_at + self.image.offset


def payload_bytes(buffer: Buffer) -> int:
    """Return how many bytes a buffer's payload has."""
    itemsize = DTYPES[buffer.dtype].itemsize
    if 0 in buffer.shape:
        return 0
    if buffer.strides is not None:
        return itemsize * (1 + sum((n - 1) * s for n, s in zip(buffer.shape, buffer.strides, strict=True)))
    return itemsize * int(np.prod(buffer.shape, dtype=np.int64))


def place(image: Image) -> tuple[int, int]:
    """Return where the image begins in its pages, and how many bytes of pages it needs.

    The payload lies `image.misalign_bytes` past a multiple of 256, and nothing but the few bytes that takes
    lies between the image's end and the end of its pages.
    """
    after = image.data.nbytes - image.offset  # payload and back guard
    slack = -(image.misalign_bytes + after) % ALIGNMENT
    pages = -(-(image.data.nbytes + slack) // PAGE) or 1
    mapped = pages * PAGE
    return mapped - slack - image.data.nbytes, mapped


class BufferFile:
    """The memory that a runner shares with this process, filled from images and read back into them.

    Parameters
    ----------
    plan : LaunchPlan
    executions : sequence of mapping
        Images by buffer name.
    seed : int
        Of the bytes around the images; 0 draws them anew.
    """

    def __init__(self, plan: LaunchPlan, executions: Sequence[Mapping[str, Image]], *, seed: int = 0) -> None:
        self.slots: list[list[Slot]] = []
        # What lies around the images: no kernel can know it and write it back. Runs that are compared share a seed, and
        # a read that goes outside does not look like a race.
        self._canary = np.random.default_rng(seed or None).integers(0, 256, PAGE, np.uint8)
        self.file = -1
        count = max(len(plan.buffers) * len(executions), 1)
        self.slot_bytes = min(MAX_SLOT_BYTES, SLOTS_BYTES // count) // PAGE * PAGE
        offset = index = 0
        for images in executions:
            row = []
            for buffer in plan.buffers:
                image = images[buffer.name]
                image_at, mapped = place(image)
                # The pages end in the middle of the slot: half of it lies unmapped behind them.
                address = SLOTS_BASE + index * self.slot_bytes + self.slot_bytes // PAGE // 2 * PAGE - mapped
                if mapped > self.slot_bytes // 2 - PAGE:
                    raise MemoryError(f"`{buffer.name}` needs {mapped} bytes of address space")
                row.append(Slot(buffer.name, address, offset, mapped, image_at, image))
                offset += mapped
                index += 1
            self.slots.append(row)
        self._plan = plan
        self.total_bytes = max(offset, PAGE)
        available = _available_bytes()
        if self.total_bytes > available:
            raise MemoryError(f"{self.total_bytes} bytes are needed, {available} are available")
        self.file = os.memfd_create("llmkernel-buffers", os.MFD_CLOEXEC)
        try:
            os.ftruncate(self.file, self.total_bytes)
            self._map = mmap.mmap(self.file, self.total_bytes)
            self._fill()
        except BaseException:
            self.close()
            raise

    def _fill(self) -> None:
        zeroed = {b.name for b in self._plan.buffers if b.is_zeroed}
        for slot in (slot for row in self.slots for slot in row):
            pages = self._pages(slot)
            end = slot.image_at + slot.image.data.nbytes
            pages[: slot.image_at] = self._canary[: slot.image_at]
            pages[slot.image_at : end] = slot.image.data
            pages[end:] = self._canary[: pages.size - end]
            if slot.name in zeroed:
                begin = slot.image_at + slot.image.offset
                pages[begin : begin + slot.image.nbytes] = 0

    def copy_back(self, execution: int, names: Collection[str]) -> tuple[Slot, int] | None:
        """Update the images of one execution, those of the buffers `names`.

        Returns
        -------
        (Slot, int) or None
            The first buffer around which bytes were changed, with that byte's offset from its payload.
        """
        overrun: tuple[Slot, int] | None = None
        for slot in self.slots[execution]:
            pages = self._pages(slot)
            end = slot.image_at + slot.image.data.nbytes
            if slot.name in names:
                slot.image.data[:] = pages[slot.image_at : end]
            for begin, part in ((0, pages[: slot.image_at]), (end, pages[end:])):
                changed = np.flatnonzero(part != self._canary[: part.size])
                if changed.size and overrun is None:
                    overrun = slot, begin + int(changed[0]) - slot.image_at - slot.image.offset
        return overrun

    def find(self, execution: int, address: int) -> Slot | None:
        """Return the buffer in whose slot an address lies."""
        index = (address - SLOTS_BASE) // self.slot_bytes
        in_row = index - execution * len(self._plan.buffers)
        row = self.slots[execution] if execution < len(self.slots) else []
        return row[in_row] if 0 <= in_row < len(row) else None

    def close(self) -> None:
        """Give the memory back."""
        if self.file >= 0:
            os.close(self.file)
            self.file = -1
        mapped = self.__dict__.pop("_map", None)
        if mapped is not None:
            mapped.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _pages(self, slot: Slot) -> Bytes:
        return np.frombuffer(self._map, np.uint8, slot.mapped_bytes, slot.file_offset)


def _available_bytes() -> int:
    """Return how much memory can be taken before the system would have to end processes."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    return 1 << 62
