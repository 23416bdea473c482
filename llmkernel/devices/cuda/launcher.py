"""Launches a plan through `cuLaunchKernelEx`: parameters are packed once, only addresses change a call."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from llmkernel.devices.base import DeviceLimits
from llmkernel.devices.cuda.driver import (
    FUNCTION_MAX_DYNAMIC_SHARED_BYTES,
    FUNCTION_MAX_THREADS,
    FUNCTION_NON_PORTABLE_CLUSTER,
    FUNCTION_SHARED_BYTES,
    LAUNCH_CLUSTER_DIMENSION,
    LAUNCH_COOPERATIVE,
    Driver,
    DriverError,
    LaunchAttribute,
    LaunchConfig,
)
from llmkernel.devices.cuda.tensor_map import (
    TENSOR_MAP_ALIGNMENT,
    TENSOR_MAP_BYTES,
    check_tensor_map,
    encode_tensor_map,
)
from llmkernel.devices.plan import (
    Buffer,
    KernelLaunch,
    LaunchPlan,
    PointerArgument,
    ScalarArgument,
    TensorMapArgument,
)
from llmkernel.errors import LaunchError
from llmkernel.problem.dtypes import DTYPES

_DEFAULT_SHARED_BYTES = 48 * 1024
_PORTABLE_CLUSTER = 8


def buffer_bytes(buffer: Buffer) -> int:
    """Return the payload size of a buffer in bytes: up to the last element that its strides reach."""
    itemsize = DTYPES[buffer.dtype].itemsize
    if 0 in buffer.shape:
        return 0
    if buffer.strides is None:
        return math.prod(buffer.shape) * itemsize
    return (1 + sum((n - 1) * s for n, s in zip(buffer.shape, buffer.strides, strict=True))) * itemsize


def scalar_bytes(argument: ScalarArgument, line: int = 0) -> bytes:
    """Return the bytes of a by-value parameter.

    Raises
    ------
    llmkernel.errors.LaunchError
        The value does not fit the parameter's dtype.
    """
    dtype = DTYPES[argument.dtype]
    value = argument.value
    try:
        if dtype.kind in "iu" and not isinstance(value, bool | int):
            raise TypeError
        if dtype.kind in "iu":
            return int(value).to_bytes(dtype.itemsize, "little", signed=dtype.kind == "i")  # type: ignore[arg-type]
        return np.array(value, dtype=dtype.numpy).tobytes()
    except (OverflowError, TypeError, ValueError) as error:
        raise LaunchError(
            f"line {line}: a value does not fit its parameter.",
            line=line,
            rule="values are never truncated",
            received=f"{value!r} for a parameter of dtype {argument.dtype}",
            next_step="Declare the kernel's parameter wider, or add a `require` to the header.",
        ) from error


@dataclass
class PreparedLaunch:
    """One kernel launch with packed parameters.

    Attributes
    ----------
    pointers : list of (ctypes.c_uint64, int, int)
        Slot to patch, index of the buffer in the plan, offset in bytes.
    tensor_maps : list of (int, int, TensorMapArgument)
        Host address of the descriptor, index of the buffer, what to encode.
    """

    launch: KernelLaunch
    function: ctypes.c_void_p
    config: LaunchConfig
    config_reference: Any
    parameters: Any
    pointers: list[tuple[ctypes.c_uint64, int, int]]
    tensor_maps: list[tuple[int, int, TensorMapArgument]]
    storage: Any

    def starts_with_buffers(self, count: int) -> bool:
        """Whether the pointers are the plan's `count` buffers in order, unshifted, before all other parameters."""
        base = ctypes.addressof(self.storage[0])
        found = [(ctypes.addressof(slot) - base, index, shift) for slot, index, shift in self.pointers]
        return found == [(8 * i, i, 0) for i in range(count)]


class PreparedPlan:
    """A plan whose parameters are packed for one context.

    Not for use from two threads at once: addresses are written into shared storage before a launch.

    Parameters
    ----------
    driver : Driver
    functions : mapping
        Name expression to `CUfunction`.
    plan : LaunchPlan
    limits : DeviceLimits

    Raises
    ------
    llmkernel.errors.LaunchError
        A limit of the device or of a kernel; carries the header's line.
    """

    def __init__(
        self, driver: Driver, functions: Mapping[str, int], plan: LaunchPlan, limits: DeviceLimits
    ) -> None:
        self.driver = driver
        self.plan = plan
        self._index = {buffer.name: index for index, buffer in enumerate(plan.buffers)}
        self._launch_kernel = driver.launch_kernel
        self._memset = driver.raw["cuMemsetD8Async"]
        self._zeroed = [
            (i, buffer_bytes(b)) for i, b in enumerate(plan.buffers) if b.is_zeroed and buffer_bytes(b)
        ]
        self.launches = [self._prepare(functions[launch.kernel], launch, limits) for launch in plan.launches]

    def zero(self, addresses: Sequence[int], stream: int) -> None:
        """Fill the buffers declared ``= 0``, in stream order."""
        for index, nbytes in self._zeroed:
            self._check(self._memset(addresses[index], 0, nbytes, stream), "cuMemsetD8Async")

    def launch(self, addresses: Sequence[int], stream: int) -> None:
        """Zero-fill and launch everything on a stream, without waiting.

        Parameters
        ----------
        addresses : sequence of int
            Device address of each of the plan's buffers, in the plan's order.
        stream : int
            `CUstream`.

        Raises
        ------
        llmkernel.devices.cuda.driver.DriverError
        """
        if self._zeroed:
            self.zero(addresses, stream)
        for prepared in self.launches:
            self.launch_one(prepared, addresses, stream)

    @property
    def is_plain(self) -> bool:
        """Whether the plan is one launch without zero-fills and tensor maps."""
        return len(self.launches) == 1 and not self._zeroed and not self.launches[0].tensor_maps

    def launcher(self) -> Callable[[Sequence[int], int], None]:
        """Return `launch`, or for a plan of one plain launch a function that does the same in less time."""
        if not self.is_plain:
            return self.launch
        only, launch_kernel, driver = self.launches[0], self._launch_kernel, self.driver
        pointers, config, function, parameters = only.pointers, only.config, only.function, only.parameters
        reference = only.config_reference

        def launch(addresses: Sequence[int], stream: int) -> None:
            for slot, index, offset in pointers:
                slot.value = addresses[index] + offset
            config.stream = stream
            code = launch_kernel(reference, function, parameters, None)
            if code:
                raise driver.error(code, "cuLaunchKernelEx")

        return launch

    def launch_one(self, prepared: PreparedLaunch, addresses: Sequence[int], stream: int) -> None:
        """Launch one kernel of the plan on a stream, without waiting."""
        for slot, index, offset in prepared.pointers:
            slot.value = addresses[index] + offset
        for place, index, argument in prepared.tensor_maps:
            buffer = self.plan.buffers[index]
            encode_tensor_map(self.driver, place, buffer, argument, addresses[index], prepared.launch.line)
        prepared.config.stream = stream
        code = self._launch_kernel(prepared.config_reference, prepared.function, prepared.parameters, None)
        if code:
            raise self.driver.error(code, "cuLaunchKernelEx")

    def _check(self, code: int, call: str) -> None:
        if code:
            raise self.driver.error(code, call)

    def _prepare(self, function: int, launch: KernelLaunch, limits: DeviceLimits) -> PreparedLaunch:
        self._check_limits(function, launch, limits)
        config = LaunchConfig(*launch.grid, *launch.block, launch.shared_bytes, None, None, 0)
        attributes = self._attributes(launch)
        if attributes:
            config.attributes = (LaunchAttribute * len(attributes))(*attributes)
            config.attribute_count = len(attributes)
        storage, offsets = _storage([self._parameter_bytes(a, launch) for a in launch.arguments])
        base = ctypes.addressof(storage[0])
        pointers: list[tuple[ctypes.c_uint64, int, int]] = []
        maps: list[tuple[int, int, TensorMapArgument]] = []
        for argument, offset in zip(launch.arguments, offsets, strict=True):
            if isinstance(argument, PointerArgument):
                buffer = self.plan.buffer(argument.buffer)
                shift = argument.offset * DTYPES[buffer.dtype].itemsize
                slot = ctypes.c_uint64.from_buffer(storage[0], offset)
                pointers.append((slot, self._index[argument.buffer], shift))
            elif isinstance(argument, TensorMapArgument):
                maps.append((base + offset, self._index[argument.buffer], argument))
        parameters = (ctypes.c_void_p * max(len(offsets), 1))(*(base + offset for offset in offsets))
        return PreparedLaunch(
            launch,
            ctypes.c_void_p(function),
            config,
            ctypes.byref(config),
            parameters,
            pointers,
            maps,
            storage,
        )

    def _parameter_bytes(self, argument: Any, launch: KernelLaunch) -> tuple[bytes, int]:
        """Return the initial bytes of a parameter and their alignment."""
        if isinstance(argument, PointerArgument):
            return bytes(8), 8
        if isinstance(argument, ScalarArgument):
            data = scalar_bytes(argument, launch.line)
            return data, len(data)
        check_tensor_map(self.plan.buffer(argument.buffer), argument, launch.line)
        return bytes(TENSOR_MAP_BYTES), TENSOR_MAP_ALIGNMENT

    def _attributes(self, launch: KernelLaunch) -> list[LaunchAttribute]:
        attributes = []
        if launch.cluster is not None:
            attribute = LaunchAttribute(id=LAUNCH_CLUSTER_DIMENSION)
            attribute.value[0], attribute.value[1], attribute.value[2] = launch.cluster
            attributes.append(attribute)
        if launch.is_cooperative:
            attribute = LaunchAttribute(id=LAUNCH_COOPERATIVE)
            attribute.value[0] = 1
            attributes.append(attribute)
        return attributes

    def _check_limits(self, function: int, launch: KernelLaunch, limits: DeviceLimits) -> None:
        static = self.driver.function_attribute(FUNCTION_SHARED_BYTES, function)
        total = static + launch.shared_bytes
        threads = math.prod(launch.block)
        max_threads = self.driver.function_attribute(FUNCTION_MAX_THREADS, function)
        if threads > max_threads:
            raise _limit(
                launch, "threads a block", threads, max_threads, "Use smaller blocks or __launch_bounds__."
            )
        if total > limits.max_shared_bytes:
            what = f"bytes of shared memory a block ({static} static)"
            raise _limit(launch, what, total, limits.max_shared_bytes, "Use less shared memory a block.")
        if launch.cluster is not None:
            self._check_cluster(function, launch, limits)
        if total > _DEFAULT_SHARED_BYTES:
            allowed = self.driver.function_attribute(FUNCTION_MAX_DYNAMIC_SHARED_BYTES, function)
            if allowed < launch.shared_bytes:
                attribute = FUNCTION_MAX_DYNAMIC_SHARED_BYTES
                self.driver.call("cuFuncSetAttribute", function, attribute, launch.shared_bytes)
        if launch.is_cooperative:
            blocks, resident = math.prod(launch.grid), self.resident_blocks(function, launch) * limits.num_sms
            if blocks > resident:
                raise _limit(
                    launch, "blocks of a cooperative launch", blocks, resident, "Launch fewer blocks."
                )

    def _check_cluster(self, function: int, launch: KernelLaunch, limits: DeviceLimits) -> None:
        assert launch.cluster is not None
        size = math.prod(launch.cluster)
        if size > limits.max_cluster_size:
            raise _limit(launch, "blocks a cluster", size, limits.max_cluster_size, "Use a smaller cluster.")
        if any(grid % cluster for grid, cluster in zip(launch.grid, launch.cluster, strict=True)):
            raise LaunchError(
                f"line {launch.line}: the grid {launch.grid} is no multiple of the cluster {launch.cluster}.",
                line=launch.line,
                next_step="Round the grid up to whole clusters and let the extra blocks do nothing.",
            )
        if size > _PORTABLE_CLUSTER:
            self.driver.call("cuFuncSetAttribute", function, FUNCTION_NON_PORTABLE_CLUSTER, 1)

    def resident_blocks(self, function: int, launch: KernelLaunch) -> int:
        """Return how many blocks of a launch one multiprocessor holds at a time."""
        blocks = ctypes.c_int()
        threads = math.prod(launch.block)
        name = "cuOccupancyMaxActiveBlocksPerMultiprocessor"
        self.driver.call(name, ctypes.byref(blocks), function, threads, launch.shared_bytes)
        return blocks.value


def _storage(parameters: list[tuple[bytes, int]]) -> tuple[Any, list[int]]:
    """Lay parameters out in one buffer, each aligned, and return (buffer, keep-alive) and the offsets."""
    offsets, end = [], 0
    for data, alignment in parameters:
        end = -(-end // alignment) * alignment
        offsets.append(end)
        end += len(data)
    raw = ctypes.create_string_buffer(end + TENSOR_MAP_ALIGNMENT)
    shift = -ctypes.addressof(raw) % TENSOR_MAP_ALIGNMENT
    view = (ctypes.c_ubyte * max(end, 1)).from_buffer(raw, shift)
    for (data, _), offset in zip(parameters, offsets, strict=True):
        ctypes.memmove(ctypes.addressof(view) + offset, data, len(data))
    return (view, raw), offsets


def _limit(launch: KernelLaunch, what: str, received: int, limit: int, next_step: str) -> LaunchError:
    return LaunchError(
        f"line {launch.line}: {launch.kernel} asks for {received} {what}; this GPU allows {limit}.",
        line=launch.line,
        rule=f"at most {limit} {what}",
        received=str(received),
        next_step=next_step,
    )


__all__ = ["DriverError", "PreparedLaunch", "PreparedPlan", "buffer_bytes", "scalar_bytes"]
