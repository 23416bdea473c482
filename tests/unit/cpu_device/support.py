"""Running one kernel of a source on the cpu device, as a test writes it."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import Any

import numpy as np

from llmkernel.devices.base import Execution, ExecutionOptions, Fault, Image
from llmkernel.devices.cpu.device import CpuDevice
from llmkernel.devices.plan import Buffer, KernelLaunch, LaunchPlan, PointerArgument, ScalarArgument
from llmkernel.problem.dtypes import dtype_name

DEVICE = CpuDevice()
GUARD = 256


@dataclass
class Run:
    """What one run left: the arrays in argument order, and the execution."""

    arrays: list[np.ndarray]
    execution: Execution

    @property
    def fault(self) -> Fault:
        assert self.execution.fault is not None, "the run was to end in a fault"
        return self.execution.fault


def triple(size: int | tuple[int, ...]) -> tuple[int, int, int]:
    x, y, z = (*((size,) if isinstance(size, int) else size), 1, 1)[:3]
    return (x, y, z)


def image_of(array: np.ndarray, misalign: int = 0) -> Image:
    payload = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    data = np.zeros(GUARD + payload.size, np.uint8)
    data[GUARD:] = payload
    return Image(data, GUARD, payload.size, misalign)


def make_plan(
    kernel: str, grid: Any, block: Any, arguments: tuple[Any, ...], shared: int = 0
) -> tuple[LaunchPlan, dict[str, np.ndarray]]:
    """A plan with one launch. Arrays become inout buffers a0, a1, …; NumPy scalars are passed by value."""
    buffers, passed, arrays = [], [], {}
    for i, argument in enumerate(arguments):
        if isinstance(argument, np.ndarray):
            name = f"a{i}"
            buffers.append(Buffer(name, dtype_name(argument.dtype), argument.shape, "inout"))
            arrays[name] = argument
            passed.append(PointerArgument(name))
        else:
            passed.append(ScalarArgument(dtype_name(np.asarray(argument).dtype), argument.item()))
    launch = KernelLaunch(kernel, triple(grid), triple(block), shared, None, False, tuple(passed), 1)
    return LaunchPlan(tuple(buffers), (launch,), tuple(arrays)), arrays


def run(
    source: str,
    kernel: str,
    grid: Any,
    block: Any,
    *arguments: Any,
    shared: int = 0,
    options: ExecutionOptions | None = None,
    misalign: int = 0,
) -> Run:
    """Compile `source` and launch `kernel` once; arrays are copied, and come back in `Run.arrays`."""
    module = DEVICE.compile(textwrap.dedent(source), [kernel])
    plan, arrays = make_plan(kernel, grid, block, arguments, shared)
    images = {name: image_of(array, misalign) for name, array in arrays.items()}
    execution = DEVICE.execute(module, plan, images, options or ExecutionOptions(timeout_seconds=10))
    after = [images[n].payload.view(a.dtype).reshape(a.shape).copy() for n, a in arrays.items()]
    return Run(after, execution)


def results(
    source: str, kernel: str, grid: Any, block: Any, *arguments: Any, **options: Any
) -> list[np.ndarray]:
    """As `run`, for a run that must end well."""
    done = run(source, kernel, grid, block, *arguments, **options)
    assert done.execution.fault is None, done.execution.fault
    return done.arrays
