"""Numbers, text, dtypes and arrays as one line of text each, for a fingerprint."""

from __future__ import annotations

import hashlib
import sys
from typing import Any

import numpy as np

_MAX_HASHED_BYTES = 64 << 20


def describe_plain(value: Any) -> str | None:
    """Return the text of a number, a string, a dtype and their like; None for everything else.

    Examples
    --------
    >>> describe_plain(1), describe_plain(1.0), describe_plain(np.float32(1))
    ('int 1', 'float 1.0', 'float32 1.0')
    """
    if value is None or value is Ellipsis:
        return repr(value)
    if type(value) in (bool, int, float, complex, str, bytes):
        return f"{type(value).__name__} {value!r}"
    if isinstance(value, slice | range):
        return repr(value)
    if isinstance(value, np.generic):
        return f"{value.dtype.name} {value.item()!r}"
    if isinstance(value, np.dtype):
        return f"dtype {value.str if value.names is None else value.descr}"
    torch = sys.modules.get("torch")
    if torch is not None:
        if isinstance(value, torch.dtype | torch.device | torch.Size):
            return f"torch {value}"
        if isinstance(value, torch.layout | torch.memory_format):
            return f"torch {value}"
    return None


def describe_array(value: Any) -> tuple[str, str] | None:
    """Return the text of an array, by its contents, and a note on what is not covered (empty: nothing).

    None for what is not a NumPy, CuPy or torch array. torch and cupy are only looked at where they are
    loaded.
    """
    if isinstance(value, np.ndarray):
        return _hashed("array", value.dtype.name, value.shape, value.nbytes, lambda: value)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        size = value.numel() * value.element_size()
        dtype = str(value.dtype).rsplit(".", 1)[-1]
        return _hashed("tensor", dtype, tuple(value.shape), size, lambda: _tensor_bytes(torch, value))
    cupy = sys.modules.get("cupy")
    if cupy is not None and isinstance(value, cupy.ndarray):
        return _hashed("array", value.dtype.name, value.shape, value.nbytes, value.get)
    return None


def _hashed(word: str, dtype: str, shape: tuple[int, ...], size: int, read: Any) -> tuple[str, str]:
    text = f"{word} {dtype}{list(shape)}"
    if size > _MAX_HASHED_BYTES:
        return (
            text,
            f"of more than {_MAX_HASHED_BYTES >> 20} MiB only dtype and shape are covered.",
        )
    if dtype == "object":
        return text, "of an array of objects only the shape is covered."
    contents = np.ascontiguousarray(read())
    return f"{text} {hashlib.sha256(contents.tobytes()).hexdigest()}", ""


def _tensor_bytes(torch: Any, value: Any) -> Any:
    if value.layout is not torch.strided:
        value = value.to_dense()
    # NumPy has no bfloat16: take the bytes.
    return value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
