"""Timing on the `cpu` device: wall time inside the runner. It is emulation and says nothing about a GPU."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from llmkernel.devices.base import Bytes, ExecutionOptions, Image, Module, Sampler
from llmkernel.devices.cpu.memory import payload_bytes
from llmkernel.devices.plan import LaunchPlan
from llmkernel.errors import LaunchError

if TYPE_CHECKING:
    from llmkernel.devices.cpu.device import CpuDevice

_TIMEOUT_SECONDS = 60.0
_KEPT_OUTPUTS = 3
# A run that someone else ended is made again this often.
_KILLS_FORGIVEN = 2
# How much memory the draws that share a process may take together.
_BATCH_BYTES = 1 << 30


class CpuSampler(Sampler):
    """Times one plan over several draws; each process first runs one execution that is not counted.

    Parameters
    ----------
    device : CpuDevice
    module : Module
    plan : LaunchPlan
    draws : sequence of mapping
        Payload bytes of input and inout buffers, by name.
    """

    def __init__(
        self, device: CpuDevice, module: Module, plan: LaunchPlan, draws: Sequence[Mapping[str, Bytes]]
    ) -> None:
        self._device = device
        self._module = module
        self._plan = plan
        self._draws = draws
        self._random = random.Random()  # noqa: S311 - which launches are looked at, not a secret
        self._kept: list[tuple[int, dict[str, Bytes]]] = []
        self._names = dict.fromkeys((*plan.results, *(b.name for b in plan.buffers if b.role == "inout")))

    def sample(self, count: int) -> list[float]:
        """Take `count` samples and return milliseconds, one fresh draw a sample.

        Raises
        ------
        llmkernel.errors.LaunchError
            When a run ends in a fault.
        """
        order: list[int] = []
        while len(order) < count:
            shuffled = list(range(len(self._draws)))
            self._random.shuffle(shuffled)
            order += shuffled
        order = order[:count]
        looked_at = set(self._random.sample(range(count), min(_KEPT_OUTPUTS, count)))
        self._kept = []
        size = sum(payload_bytes(b) for b in self._plan.buffers) + 1
        batch = max(1, min(len(order), _BATCH_BYTES // size))
        elapsed: list[float] = []
        for first in range(0, len(order), batch):
            draws = order[first : first + batch]
            runs = [self._images(draw) for draw in (draws[0], *draws)]
            for _ in range(_KILLS_FORGIVEN + 1):
                executions = self._device.execute_many(
                    self._module, self._plan, runs, ExecutionOptions(timeout_seconds=_TIMEOUT_SECONDS)
                )
                fault = executions[-1].fault
                if fault is None or fault.kind != "killed":
                    break
            if fault is not None:
                raise LaunchError("A timed run ended in a fault.", received=f"{fault.kind}: {fault.message}")
            elapsed += [e.elapsed_ms for e in executions[1:]]
            for i, draw in enumerate(draws):
                if first + i in looked_at:
                    results = {name: runs[1 + i][name].payload.copy() for name in self._names}
                    self._kept.append((draw, results))
        return elapsed

    def outputs(self) -> list[tuple[int, dict[str, Bytes]]]:
        """Return results of launches of the last `sample` call, chosen at random: draw and payloads by name."""
        return list(self._kept)

    def close(self) -> None:
        """Free everything; no process outlives a call."""
        self._kept = []

    def _images(self, draw: int) -> dict[str, Image]:
        given = self._draws[draw]
        images = {}
        for buffer in self._plan.buffers:
            data = given.get(buffer.name)
            if data is None:
                # Not zeros, which a kernel that forgets to write would get for free.
                data = np.full(payload_bytes(buffer), 0x7F - draw % 16, np.uint8)
            images[buffer.name] = Image(np.array(data, np.uint8), 0, data.nbytes)
        return images
