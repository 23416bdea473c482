"""TMA descriptors."""

from __future__ import annotations

import ctypes

from llmkernel.candidate.arguments import ArrayArgument
from llmkernel.candidate.layout import contiguous_strides
from llmkernel.candidate.tensor_maps import array_reason, box_reason
from llmkernel.devices.cuda.driver import Driver
from llmkernel.devices.plan import Buffer, TensorMapArgument
from llmkernel.errors import LaunchError
from llmkernel.problem.dtypes import DTYPES

TENSOR_MAP_BYTES = 128
TENSOR_MAP_ALIGNMENT = 64

# `CUtensorMapDataType`; signed bytes and half words are moved as unsigned ones.
_DATA_TYPES = {
    "bool": 0,
    "uint8": 0,
    "int8": 0,
    "uint16": 1,
    "int16": 1,
    "uint32": 2,
    "int32": 3,
    "uint64": 4,
    "int64": 5,
    "float16": 6,
    "float32": 7,
    "float64": 8,
    "bfloat16": 9,
}
_SWIZZLES = {0: 0, 32: 1, 64: 2, 128: 3}
_L2_PROMOTION_128 = 2


def check_tensor_map(buffer: Buffer, argument: TensorMapArgument, line: int) -> None:
    """Raise `LaunchError` for what TMA cannot describe; the address is known only at the launch."""
    itemsize = DTYPES[buffer.dtype].itemsize
    problem = array_reason(ArrayArgument(buffer.dtype, buffer.shape, buffer.strides))
    if problem is None and len(argument.box) != len(buffer.shape):
        problem = f"the box has {len(argument.box)} axes and the array {len(buffer.shape)}"
    problem = problem or box_reason(argument.box, argument.swizzle, itemsize)
    if problem:
        raise LaunchError(
            f"line {line}: tensor_map({buffer.name}) cannot be made: {problem}.",
            line=line,
            rule="tensor maps follow cuTensorMapEncodeTiled",
            received=f"{buffer.dtype}{list(buffer.shape)}, box={argument.box}, swizzle={argument.swizzle}",
            next_step="Guard the launch with `when tma_ok(...)` and give a branch without TMA.",
        )


def encode_tensor_map(
    driver: Driver, destination: int, buffer: Buffer, argument: TensorMapArgument, address: int, line: int
) -> None:
    """Write the 128-byte descriptor of an array whose innermost axis is contiguous.

    Parameters
    ----------
    destination : int
        Host address, aligned to 64 bytes.
    address : int
        Device address, aligned to 16 bytes.
    """
    encode = driver.optional("cuTensorMapEncodeTiled")
    if encode is None:
        raise LaunchError(
            f"line {line}: this driver cannot make tensor maps.",
            line=line,
            next_step="Update the NVIDIA driver to 525 or newer.",
        )
    itemsize = DTYPES[buffer.dtype].itemsize
    rank = len(buffer.shape)
    # CUDA counts axes from the innermost one.
    extents = (ctypes.c_uint64 * rank)(*reversed(buffer.shape))
    steps_of_axes = buffer.strides or contiguous_strides(buffer.shape)
    strides = (ctypes.c_uint64 * max(rank - 1, 1))(
        *(step * itemsize for step in reversed(steps_of_axes[:-1]))
    )
    box = (ctypes.c_uint32 * rank)(*reversed(argument.box))
    steps = (ctypes.c_uint32 * rank)(*([1] * rank))
    code = encode(
        destination,
        _DATA_TYPES[buffer.dtype],
        rank,
        address,
        extents,
        strides,
        box,
        steps,
        0,
        _SWIZZLES[argument.swizzle],
        _L2_PROMOTION_128,
        0,
    )
    if code:
        error = driver.error(code, "cuTensorMapEncodeTiled")
        raise LaunchError(
            f"line {line}: the driver refused tensor_map({buffer.name}).",
            line=line,
            rule="the address is a multiple of 16 bytes",
            received=f"{error.name}; address {address:#x}, shape {buffer.shape}, box {argument.box}",
            next_step="Guard the launch with `when tma_ok(...)` and give a branch without TMA.",
        )
