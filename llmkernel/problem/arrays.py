"""Moving values between NumPy, CuPy and torch without importing what is not already in use."""

from __future__ import annotations

import sys
from typing import Any, Literal

import ml_dtypes
import numpy as np
import numpy.typing as npt

from llmkernel.errors import ReferenceProblem, type_text
from llmkernel.problem.dtypes import DTYPES, dtype_name

Kind = Literal["numpy", "cupy", "torch", "scalar", "other"]
HostArray = npt.NDArray[Any]

_BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


def kind_of(value: object) -> Kind:
    """Say which framework a value belongs to.

    Python and NumPy scalars are ``scalar``; whatever is neither an array nor a number is ``other``.
    """
    if isinstance(value, bool | int | float | complex | np.generic):
        return "scalar"
    if isinstance(value, np.ndarray):
        return "numpy"
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return "torch"
    cupy = sys.modules.get("cupy")
    if cupy is not None and isinstance(value, cupy.ndarray):
        return "cupy"
    return "other"


def is_on_gpu(value: Any) -> bool:
    """Whether an array lives in GPU memory."""
    kind = kind_of(value)
    return kind == "cupy" or (kind == "torch" and value.device.type == "cuda")


def is_array(value: object) -> bool:
    """Whether a value is an array of one of the three frameworks."""
    return kind_of(value) in ("numpy", "cupy", "torch")


def to_numpy(value: Any) -> HostArray:
    """Copy an array to the host as a C-contiguous NumPy array of the same dtype and shape."""
    kind = kind_of(value)
    if kind == "torch":
        import torch

        tensor = value.detach().resolve_conj().resolve_neg().contiguous()
        # A copy from the GPU is our own already; one of a host tensor must be made.
        tensor = tensor.cpu() if value.is_cuda else tensor.clone()
        if tensor.dtype == torch.bfloat16:
            return np.asarray(tensor.view(torch.int16).numpy().view(_BFLOAT16))
        return np.asarray(tensor.numpy())
    if kind == "cupy":
        return np.ascontiguousarray(value.get())
    # np.array(order="C") keeps 0-d arrays 0-d; ascontiguousarray would make them 1-d. Devices read native bytes.
    return np.array(value, dtype=value.dtype.newbyteorder("="), order="C")


def from_numpy(array: HostArray, like: Any) -> Any:
    """Copy a host array into the framework and onto the device of `like`."""
    kind = kind_of(like)
    if kind == "torch":
        import torch

        if array.dtype == _BFLOAT16:
            tensor = torch.from_numpy(array.view(np.int16).copy()).view(torch.bfloat16)
        else:
            tensor = torch.from_numpy(np.array(array, order="C"))
        return tensor.to(like.device)
    if kind == "cupy":
        import cupy

        with like.device:
            return cupy.asarray(array)
    return np.array(array, order="C")


def widened(array: HostArray) -> HostArray:
    """Return floats as float64 and complex as complex128; leave integers and bool as they are."""
    name = dtype_name(array.dtype)
    kind = DTYPES[name].kind
    if kind == "f":
        return array.astype(np.float64)
    if kind == "c":
        return array.astype(np.complex128)
    return array


def upcast(value: Any) -> Any:
    """Convert a floating array to float64 and a complex one to complex128 in its own framework, on its own device."""
    kind = kind_of(value)
    if kind == "torch":
        import torch

        if value.is_complex():
            return value.to(torch.complex128)
        return value.to(torch.float64) if value.is_floating_point() else value
    return widened(value) if kind == "numpy" else value.astype(widened(np.empty(0, value.dtype)).dtype)


def refuse_unusual_array(name: str, value: Any) -> None:
    """Refuse an array that is more, or less, than its elements: what makes it special would be lost on the way.

    Raises
    ------
    llmkernel.errors.ReferenceProblem
        For masked arrays, matrices and other subclasses, sparse and nested tensors, and tensors without values.
    """
    kind = kind_of(value)
    found = advice = ""
    if kind == "numpy" and type(value) not in (np.ndarray, np.memmap):
        found = f"a {type_text(value)}"
        advice = "Pass a plain array, such as numpy.asarray of it, and a mask as an array of its own."
    elif kind == "torch":
        import torch

        if value.is_nested:
            found, advice = "a nested tensor", "Pad it, and pass the lengths as a tensor of their own."
        elif value.layout is not torch.strided:
            found = "a sparse tensor"
            advice = "Pass its to_dense(), or its index and value tensors as inputs of their own."
        elif value.device.type not in ("cpu", "cuda"):
            found = f"a tensor on the device {value.device.type}"
            advice = (
                "Move it to the CPU or to a CUDA device; a meta tensor has no values, so create it with some."
            )
        elif type(value) not in (torch.Tensor, torch.nn.Parameter):
            found = f"a {type_text(value)}"
            advice = "Pass an ordinary torch.Tensor."
    if found:
        raise ReferenceProblem(
            f"{name} is {found}.",
            rule="inputs and results are dense, plain arrays with values",
            received=type(value).__name__ if kind == "numpy" else str(value.layout),
            next_step=advice,
        )


def results_of(value: Any) -> tuple[list[Any], bool]:
    """Split what a reference returned into its arrays.

    Returns
    -------
    results : list
        One array (or number) a result, in order.
    returns_tuple : bool
        Whether the reference returned a tuple or list.

    Raises
    ------
    llmkernel.errors.ReferenceProblem
        When something that is neither an array nor a number was returned.
    """
    items = list(value) if isinstance(value, tuple | list) else [value]
    for item in items:
        if kind_of(item) == "other":
            raise ReferenceProblem(
                "The reference returned something that is not an array.",
                rule="a reference returns an array, a number, or a tuple of them",
                received=type(item).__name__,
                next_step="Return the arrays themselves; take dictionaries and objects apart in the reference.",
            )
    return items, isinstance(value, tuple | list)


def describe(value: Any) -> str:
    """Return a short description such as ``float32[4096, 1024] (torch, cuda:0)``."""
    kind = kind_of(value)
    if kind == "scalar":
        return f"{type(value).__name__} {value!r}"
    if kind == "other":
        return type(value).__name__
    place = str(value.device) if kind == "torch" else kind
    shape = "[" + ", ".join(map(str, value.shape)) + "]"
    return f"{str(value.dtype).rsplit('.', maxsplit=1)[-1]}{shape} ({kind if kind == place else f'{kind}, {place}'})"
