"""Which arrays and boxes `cuTensorMapEncodeTiled` takes.

Limits are those of the CUDA driver API, section "Tensor Map Object Management".
"""

from __future__ import annotations

from collections.abc import Sequence

from llmkernel.candidate.arguments import ArrayArgument
from llmkernel.candidate.layout import contiguous_strides
from llmkernel.problem.dtypes import DTYPES

MAX_RANK = 5
MAX_DIM = 2**32
MAX_STRIDE_BYTES = 2**40
MAX_BOX = 256
GRANULE_BYTES = 16


def array_reason(array: ArrayArgument) -> str | None:
    """Return why an array has no tensor map, or None when it has one."""
    dtype = DTYPES[array.dtype]
    rank, shape = len(array.shape), array.shape
    if dtype.kind == "c":
        return f"{array.dtype} is not an element type of tensor maps"
    if not 1 <= rank <= MAX_RANK:
        return f"a tensor map has 1 to {MAX_RANK} axes, the array has {rank}"
    if array.address % GRANULE_BYTES:
        past = array.address % GRANULE_BYTES
        return f"the address must be a multiple of {GRANULE_BYTES} bytes, it is {past} past one"
    for axis, size in enumerate(shape):
        if not 1 <= size <= MAX_DIM:
            return f"axis {axis} has size {size}; a tensor map takes 1 to 2**32"
    strides = array.strides or contiguous_strides(shape)
    if strides[-1] != 1 and shape[-1] != 1:
        return f"the innermost axis must be contiguous, its stride is {strides[-1]} elements"
    for axis, stride in enumerate(strides[:-1]):
        size_bytes = stride * dtype.itemsize
        if size_bytes % GRANULE_BYTES or not 0 <= size_bytes < MAX_STRIDE_BYTES:
            return f"axis {axis} has a stride of {size_bytes} bytes; a multiple of {GRANULE_BYTES} is needed"
    return None


def is_tma_ok(array: ArrayArgument) -> bool:
    """Whether ``tma_ok(x)`` holds."""
    return array_reason(array) is None


def box_reason(box: Sequence[int], swizzle: int, itemsize: int) -> str | None:
    """Return why a box cannot be loaded, or None when it can."""
    for axis, size in enumerate(box):
        if not 1 <= size <= MAX_BOX:
            return f"the box has {size} elements on axis {axis}; 1 to {MAX_BOX} are possible"
    inner = box[-1] * itemsize
    if inner % GRANULE_BYTES:
        return f"the innermost side of the box has {inner} bytes; a multiple of {GRANULE_BYTES} is needed"
    if swizzle and inner > swizzle:
        return f"the innermost side of the box has {inner} bytes; swizzle={swizzle} takes at most {swizzle}"
    return None
