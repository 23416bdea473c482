"""An array in a line or two: dtype, shape, place, layout, range and odd values; never its contents."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from llmkernel.problem.arrays import kind_of, to_numpy

# More than this is neither copied from a GPU nor read through: a sample of it is.
MAX_ELEMENTS = 1 << 24


def describe_array(value: Any) -> str:
    """Describe a NumPy, CuPy or torch array.

    Returns
    -------
    str
        Such as ``numpy array float32[4, 8] on the host, C-contiguous; range -1.5 … 2.25, mean 0.01; 3 NaN``.
    """
    kind = kind_of(value)
    dtype = str(value.dtype).rpartition(".")[2]
    shape = ", ".join(str(int(size)) for size in value.shape)
    facts = [f"{kind} {_word(value, kind)} {dtype}[{shape}] on {_place(value, kind)}, {_layout(value, kind)}"]
    if kind == "torch" and value.requires_grad:
        facts[0] += ", requires_grad"
    try:
        facts += _values(value, kind)
    except Exception as error:  # noqa: BLE001 - a device that faulted, a dtype without order: said, not raised
        facts.append(f"its values cannot be read: {type(error).__name__}")
    return "; ".join(facts)


def _word(value: Any, kind: str) -> str:
    plain = {"numpy": "ndarray", "cupy": "ndarray", "torch": "Tensor"}[kind]
    name = type(value).__name__
    return {"ndarray": "array", "Tensor": "tensor"}[plain] if name == plain else name


def _place(value: Any, kind: str) -> str:
    if kind == "torch":
        return str(value.device)
    return f"cuda:{value.device.id}" if kind == "cupy" else "the host"


def _layout(value: Any, kind: str) -> str:
    if kind == "torch":
        if str(value.layout) != "torch.strided":
            return str(value.layout)
        return "contiguous" if value.is_contiguous() else f"strides {tuple(value.stride())} elements"
    if value.flags.c_contiguous:
        return "C-contiguous"
    if value.flags.f_contiguous:
        return "Fortran-contiguous"
    return f"strides {tuple(value.strides)} bytes"


def _values(value: Any, kind: str) -> list[str]:
    if any(int(size) == 0 for size in value.shape):
        return ["empty"]
    sample, step = _sampled(value)
    if kind == "torch" and value.is_floating_point() and value.element_size() < 4:
        sample = sample.detach().float()  # NumPy has not all of torch's small types
    host = np.asarray(sample) if kind == "numpy" else to_numpy(sample)
    facts = _numbers(host)
    return [f"of one element in {step}: {facts[0]}", *facts[1:]] if step > 1 and facts else facts


def _sampled(value: Any) -> tuple[Any, int]:
    """Return a view of at most `MAX_ELEMENTS`, and of how many elements it holds one; nothing is copied."""
    shape = [int(size) for size in value.shape]
    steps = [1] * len(shape)
    while prod(-(-size // step) for size, step in zip(shape, steps, strict=True)) > MAX_ELEMENTS:
        longest = max(range(len(shape)), key=lambda i: shape[i] // steps[i])
        steps[longest] *= 2
    factor = prod(steps)
    return (value[tuple(slice(None, None, step) for step in steps)] if factor > 1 else value), factor


def _numbers(array: npt.NDArray[Any]) -> list[str]:
    if array.dtype.kind == "b":
        return [f"{int(np.count_nonzero(array)):,} of {array.size:,} True"]
    if array.dtype.kind in "iu":
        return [f"range {array.min()} … {array.max()}, mean {float(array.mean()):.6g}"]
    if array.dtype.kind == "M" or array.dtype.kind == "m":
        return [f"range {array.min()} … {array.max()}"]
    if array.dtype.kind in "OSUV" and not _is_small_float(array):
        return []
    numbers = np.abs(array) if array.dtype.kind == "c" else array
    # ml_dtypes have no float64 sums of their own.
    numbers = numbers.astype(np.float32) if _is_small_float(array) or array.dtype == np.float16 else numbers
    finite = np.isfinite(numbers)
    count = int(np.count_nonzero(finite))
    facts = []
    if count:
        kept = numbers if count == numbers.size else numbers[finite]
        word = "absolute values" if array.dtype.kind == "c" else "range"
        mean = float(kept.mean(dtype=np.float64))
        facts.append(f"{word} {float(kept.min()):.6g} … {float(kept.max()):.6g}, mean {mean:.6g}")
    nan = int(np.count_nonzero(np.isnan(numbers)))
    infinite = numbers.size - count - nan
    facts.append(f"{nan:,} NaN" if nan else "no NaN")
    return facts + ([f"{infinite:,} infinite"] if infinite else [])


def _is_small_float(array: npt.NDArray[Any]) -> bool:
    # bfloat16 and the float8 types are of NumPy's kind V.
    return array.dtype.kind == "V" and array.dtype.names is None and "float" in array.dtype.name
