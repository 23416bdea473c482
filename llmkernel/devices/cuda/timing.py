"""Times launches by events, with fresh inputs and a cold cache for every sample."""

from __future__ import annotations

import ctypes
import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from llmkernel.devices.base import Bytes, DeviceLimits, Sampler
from llmkernel.devices.cuda.driver import EVENT_DEFAULT, STREAM_NON_BLOCKING, Driver, DriverError
from llmkernel.devices.cuda.launcher import PreparedPlan, buffer_bytes
from llmkernel.devices.cuda.support import Support, poison_byte

if TYPE_CHECKING:
    from llmkernel.devices.cuda.compiler import LoadedModule
    from llmkernel.devices.cuda.device import CudaDevice
    from llmkernel.devices.plan import LaunchPlan

_FLUSH_MULTIPLE = 2
_MIN_FLUSH_BYTES = 32 << 20
_HOLD_QUANTILE, _HOLD_FACTOR, _HOLD_MARGIN, _MAX_HOLD = 0.9, 1.5, 10e-6, 5e-3
_OVERHEAD_SAMPLES = 16
_ALIGNMENT = 256
_WORKING_SETS = 3
_KEPT_OUTPUTS = 4
_MEMORY_FRACTION = 0.5


class EventTimer:
    """Times whatever is launched on one stream: a plan here, a baseline's callable elsewhere.

    A sample is: `setup` (not timed), the L2 cache overwritten, a wait on the GPU that is as long as the
    host needs to queue the launch, an event, `launch`, an event. The host never waits inside the loop.

    Parameters
    ----------
    driver : Driver
    limits : DeviceLimits
    stream : int
        `CUstream` in the current context; everything that is timed must be launched on it.

    Attributes
    ----------
    event_overhead_ms : float
        What two events with nothing between them measure. It is part of every sample, not subtracted.
    hold_seconds : float
        The wait in front of each launch.
    """

    def __init__(self, driver: Driver, limits: DeviceLimits, stream: int) -> None:
        self._driver = driver
        self._stream = stream
        self._support = Support(driver, limits)
        self._flush_bytes = max(_FLUSH_MULTIPLE * limits.l2_bytes, _MIN_FLUSH_BYTES)
        self._flush = driver.allocate(self._flush_bytes)
        self._events: list[int] = []
        self.hold_seconds = 0.0
        self.event_overhead_ms = statistics.median(self.sample(range(_OVERHEAD_SAMPLES), _nothing, _nothing))

    def sample(
        self,
        draws: Sequence[int],
        setup: Callable[[int], None],
        launch: Callable[[int], None],
        after: Callable[[int], None] | None = None,
    ) -> list[float]:
        """Time one launch for each entry of `draws`.

        Parameters
        ----------
        draws : sequence of int
            Passed on to the callables.
        setup, launch : callable
            Queue work on the stream; they must not wait for it.
        after : callable, optional
            Queues work behind the second event; receives the position in `draws`.

        Returns
        -------
        list of float
            Milliseconds, in the order of `draws`.
        """
        driver, stream = self._driver, self._stream
        record = driver.raw["cuEventRecord"]
        self._grow_events(2 * len(draws))
        waits: list[float] = []
        for position, draw in enumerate(draws):
            start, stop = self._events[2 * position], self._events[2 * position + 1]
            # GPUs without persisting lines answer "not supported", which is as good as a reset.
            driver.raw["cuCtxResetPersistingL2Cache"]()
            setup(draw)
            driver.call("cuMemsetD8Async", self._flush, position & 0xFF, self._flush_bytes, stream)
            if self.hold_seconds:
                self._support.hold(int(1e9 * self.hold_seconds), stream)
            record(start, stream)
            queued = time.perf_counter()
            launch(draw)
            waits.append(time.perf_counter() - queued)
            record(stop, stream)
            if after is not None:
                after(position)
        driver.call("cuStreamSynchronize", stream)
        # A slow one in ten (the first call, a garbage collection) may be measured with a gap: the median is not.
        usual = sorted(waits)[int(_HOLD_QUANTILE * (len(waits) - 1))] if waits else 0.0
        self.hold_seconds = min(_HOLD_FACTOR * usual + _HOLD_MARGIN, _MAX_HOLD)
        return [driver.elapsed_ms(self._events[2 * i], self._events[2 * i + 1]) for i in range(len(draws))]

    def close(self) -> None:
        """Free the flush buffer and the events."""
        self._driver.call("cuMemFree_v2", self._flush)
        for event in self._events:
            self._driver.call("cuEventDestroy_v2", event)
        self._events = []

    def _grow_events(self, count: int) -> None:
        while len(self._events) < count:
            self._events.append(self._driver.handle("cuEventCreate", EVENT_DEFAULT))


def _nothing(_: int) -> None:
    return None


class CudaSampler(Sampler):
    """Times a plan over draws of its inputs.

    The draws stay in GPU memory. Each sample copies one of them, in random order, into one of several working
    sets, so that addresses shift; outputs and scratch are poisoned first.

    Attributes
    ----------
    timer : EventTimer
    """

    def __init__(
        self, device: CudaDevice, loaded: LoadedModule, plan: LaunchPlan, draws: Sequence[Mapping[str, Bytes]]
    ) -> None:
        self._device = device
        self._driver = device.driver
        self._stream = self._driver.handle("cuStreamCreate", STREAM_NON_BLOCKING)
        self._plan = plan
        self._prepared = PreparedPlan(self._driver, loaded.functions, plan, device.limits())
        self._random = random.SystemRandom()
        self._allocations: list[int] = []
        self._sizes = [buffer_bytes(buffer) for buffer in plan.buffers]
        self._kept: list[tuple[int, int]] = []
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self._driver.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        self._masters = self._upload(draws, int(_MEMORY_FRACTION * free.value))
        self._sets = self._allocate_sets()
        result_names = dict.fromkeys((*plan.results, *(b.name for b in plan.buffers if b.role == "inout")))
        self._results = [i for i, b in enumerate(plan.buffers) if b.name in result_names]
        self._snapshots = [
            [self._allocate(self._sizes[i]) for i in self._results] for _ in range(_KEPT_OUTPUTS)
        ]
        self.timer = EventTimer(self._driver, device.limits(), self._stream)
        self._samples_taken = 0
        # Lazy loading and clock ramps are not part of a sample.
        self._take(list(range(len(self._masters))))
        self._kept = []

    def sample(self, count: int) -> list[float]:
        """Take `count` samples and return milliseconds, one fresh draw a sample."""
        order: list[int] = []
        while len(order) < count:
            shuffled = list(range(len(self._masters)))
            self._random.shuffle(shuffled)
            order += shuffled
        return self._take(order[:count])

    def outputs(self) -> list[tuple[int, dict[str, Bytes]]]:
        """Return results of some launches of the last `sample` call: draw and payloads by buffer name."""
        found: list[tuple[int, dict[str, Bytes]]] = []
        for slot, draw in self._kept:
            payloads: dict[str, Bytes] = {}
            for index, address in zip(self._results, self._snapshots[slot], strict=True):
                data = np.empty(self._sizes[index], np.uint8)
                if data.nbytes:
                    pointer = data.ctypes.data_as(ctypes.c_void_p)
                    self._driver.call("cuMemcpyDtoH_v2", pointer, address, data.nbytes)
                payloads[self._plan.buffers[index].name] = data
            found.append((draw, payloads))
        return found

    def close(self) -> None:
        """Free everything, unless the context is lost."""
        if self._device.is_lost:
            return
        self.timer.close()
        for address in self._allocations:
            self._driver.call("cuMemFree_v2", address)
        self._allocations = []
        self._driver.call("cuStreamDestroy_v2", self._stream)

    def _take(self, order: list[int]) -> list[float]:
        chosen = self._random.sample(range(len(order)), min(_KEPT_OUTPUTS, len(order)))
        slots = {position: slot for slot, position in enumerate(sorted(chosen))}
        self._kept = [(slot, order[position]) for position, slot in slots.items()]
        current = self._sets[0]

        def setup(draw: int) -> None:
            nonlocal current
            self._samples_taken += 1
            current = self._sets[self._samples_taken % len(self._sets)]
            self._refresh(draw, current)

        def launch(_: int) -> None:
            self._prepared.launch(current, self._stream)

        def after(position: int) -> None:
            slot = slots.get(position)
            if slot is not None:
                for index, target in zip(self._results, self._snapshots[slot], strict=True):
                    self._copy(target, current[index], self._sizes[index])

        try:
            return self.timer.sample(order, setup, launch, after)
        except DriverError as error:
            self._device.note_error(error)
            raise

    def _refresh(self, draw: int, addresses: list[int]) -> None:
        master = self._masters[draw]
        for buffer, address, nbytes in zip(self._plan.buffers, addresses, self._sizes, strict=True):
            if buffer.name in master:
                self._copy(address, master[buffer.name], nbytes)
            elif nbytes:
                self._driver.call("cuMemsetD8Async", address, poison_byte(draw), nbytes, self._stream)

    def _copy(self, target: int, source: int, nbytes: int) -> None:
        if nbytes:
            self._driver.call("cuMemcpyDtoDAsync_v2", target, source, nbytes, self._stream)

    def _upload(self, draws: Sequence[Mapping[str, Bytes]], budget: int) -> list[dict[str, int]]:
        """Upload as many draws as the memory holds, at least one."""
        masters: list[dict[str, int]] = []
        used = 2 * sum(self._sizes)
        for draw in draws:
            used += sum(data.nbytes for data in draw.values())
            if masters and used > budget:
                break
            master: dict[str, int] = {}
            for name, data in draw.items():
                master[name] = self._allocate(data.nbytes)
                if data.nbytes:
                    pointer = np.ascontiguousarray(data).ctypes.data_as(ctypes.c_void_p)
                    call = "cuMemcpyHtoDAsync_v2"
                    self._driver.call(call, master[name], pointer, data.nbytes, self._stream)
            self._driver.call("cuStreamSynchronize", self._stream)
            masters.append(master)
        return masters

    def _allocate_sets(self) -> list[list[int]]:
        """Allocate the working sets: at least one, each shifted against the others by some 256 bytes."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self._driver.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        size = sum(self._sizes) + 1
        count = max(1, min(_WORKING_SETS, int(_MEMORY_FRACTION * free.value) // size))
        return [
            [self._allocate(n + _ALIGNMENT * number) + _ALIGNMENT * number for n in self._sizes]
            for number in range(count)
        ]

    def _allocate(self, nbytes: int) -> int:
        address = self._driver.allocate(nbytes)
        self._allocations.append(address)
        return address
