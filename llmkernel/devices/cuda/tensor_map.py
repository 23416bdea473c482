"""TMA descriptors."""

from __future__ import annotations

import ctypes

from llmkernel.devices.cuda.driver import Driver
from llmkernel.devices.plan import Buffer, TensorMapArgument
from llmkernel.errors import LaunchError
from llmkernel.problem.dtypes import DTYPES

TENSOR_MAP_BYTES = 128
TENSOR_MAP_ALIGNMENT = 64

# `CUtensorMapDataType`; a type that TMA does not know is moved as an unsigned integer of its size.
_DATA_TYPES = {
    "bool": 0,
    "uint8": 0,
    "int8": 0,
    "uint16": 1,
    "int16": 1,
    "uint32": 2,
    "int32": 3,
    "uint64": 4,
    "complex64": 4,
    "int64": 5,
    "float16": 6,
    "float32": 7,
    "float64": 8,
    "bfloat16": 9,
}
_SWIZZLES = {0: 0, 32: 1, 64: 2, 128: 3}
_L2_PROMOTION_128 = 2
_MAX_BOX, _MAX_RANK = 256, 5


def check_tensor_map(buffer: Buffer, argument: TensorMapArgument, line: int) -> None:
    """Raise `LaunchError` for what TMA cannot describe.

    The rules are those of `cuTensorMapEncodeTiled`: rank 1 to 5, at most 256 elements an axis of the box,
    rows and inner boxes of whole 16 bytes, inner boxes no wider than the swizzle.
    """
    dtype = DTYPES[buffer.dtype]
    shape, box = buffer.shape, argument.box
    inner_bytes = box[-1] * dtype.itemsize if box else 0
    rows_bytes = [_product(shape[axis + 1 :]) * dtype.itemsize for axis in range(len(shape) - 1)]
    problem = None
    if buffer.dtype not in _DATA_TYPES:
        problem = f"TMA does not move {buffer.dtype}"
    elif not 1 <= len(shape) <= _MAX_RANK or len(box) != len(shape):
        problem = (
            f"the box has {len(box)} axes and the array {len(shape)}; both have one number of axes, 1 to 5"
        )
    elif not all(1 <= extent <= _MAX_BOX for extent in box):
        problem = f"each axis of a box has 1 to {_MAX_BOX} elements"
    elif 0 in shape:
        problem = "the array is empty"
    elif inner_bytes % 16:
        problem = f"the box's last axis is {inner_bytes} bytes, which is not a multiple of 16"
    elif argument.swizzle and inner_bytes > argument.swizzle:
        problem = f"the box's last axis is {inner_bytes} bytes, wider than the swizzle of {argument.swizzle}"
    elif any(nbytes % 16 for nbytes in rows_bytes):
        problem = f"a row of the array is {rows_bytes[-1]} bytes, which is not a multiple of 16"
    if problem:
        raise LaunchError(
            f"line {line}: tensor_map({buffer.name}) cannot be made: {problem}.",
            line=line,
            rule="TMA needs rows of whole 16 bytes and boxes of at most 256 elements an axis",
            received=f"{buffer.name}: {buffer.dtype}{list(shape)}, box={box}, swizzle={argument.swizzle}",
            next_step="Guard the launch with `when tma_ok(...)` and give a branch without TMA.",
        )


def _product(values: tuple[int, ...]) -> int:
    result = 1
    for value in values:
        result *= value
    return result


def encode_tensor_map(
    driver: Driver, destination: int, buffer: Buffer, argument: TensorMapArgument, address: int, line: int
) -> None:
    """Write the 128-byte descriptor of a C-contiguous array.

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
    strides = (ctypes.c_uint64 * max(rank - 1, 1))(
        *(_product(buffer.shape[axis:]) * itemsize for axis in range(rank - 1, 0, -1))
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
