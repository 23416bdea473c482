"""NumPy arrays and torch tensors in host memory, as bytes that a kernel can be given."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

from llmkernel.candidate.domain import VerifiedArgument
from llmkernel.devices.base import Bytes
from llmkernel.devices.cuda.refusal import refuse
from llmkernel.errors import type_text
from llmkernel.problem.dtypes import DTYPES, dtype_name


def empty_array(dtype: str, shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """Return a C-contiguous array of a header's dtype, contents undefined."""
    return np.empty(shape, DTYPES[dtype].numpy)


class HostArray(ABC):
    """One array argument.

    Attributes
    ----------
    dtype : str
    shape : tuple of int
    strides : tuple of int or None
        In elements; None for C-contiguous.
    """

    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None

    @abstractmethod
    def payload(self) -> Bytes:
        """Return the bytes from the first element to the last, a view where that is possible."""

    @abstractmethod
    def require_writable(self) -> None:
        """Raise `BindingError` where the caller's array cannot be changed."""

    @abstractmethod
    def store(self, payload: Bytes) -> None:
        """Put changed bytes back into the caller's array."""

    @property
    def extent(self) -> int:
        """Elements from the first to the last, those between them included."""
        if 0 in self.shape:
            return 0
        if self.strides is None:
            return int(np.prod(self.shape, dtype=np.int64))
        return 1 + sum((n - 1) * s for n, s in zip(self.shape, self.strides, strict=True))


class NumpyArray(HostArray):
    """A NumPy array."""

    def __init__(self, verified: VerifiedArgument, array: npt.NDArray[Any]) -> None:
        self._verified = verified
        self._array = array
        self.dtype = dtype_name(array.dtype)
        self.shape = array.shape
        itemsize = array.itemsize
        self.strides = None if array.flags.c_contiguous else tuple(s // itemsize for s in array.strides)
        if any(s % itemsize for s in array.strides) or (self.strides and min(self.strides) < 0):
            step = f"Pass `numpy.ascontiguousarray({verified.name})`."
            text = f"strides {array.strides} bytes"
            what = "its elements run backwards or lie between places that its dtype can have."
            raise refuse(verified, what, "layout", received=text, next_step=step)

    def payload(self) -> Bytes:
        """See `HostArray.payload`."""
        return self._flat().view(np.uint8)

    def require_writable(self) -> None:
        """See `HostArray.require_writable`."""
        if not self._array.flags.writeable:
            name = self._verified.name
            raise refuse(
                self._verified,
                "it is read-only, and the kernel changes it.",
                "value",
                received="a read-only array",
                next_step=f"Pass `{name}.copy()`.",
            )

    def store(self, payload: Bytes) -> None:
        """See `HostArray.store`."""
        flat = self._flat()
        flat.view(np.uint8)[:] = payload

    def _flat(self) -> npt.NDArray[Any]:
        if self.strides is None:
            return self._array.reshape(-1)
        # Between the elements of a view lies its base: memory that exists.
        return np.lib.stride_tricks.as_strided(self._array, (self.extent,), (self._array.itemsize,))


class TorchArray(HostArray):
    """A torch tensor in host memory."""

    def __init__(self, tensor: Any) -> None:
        self._tensor = tensor.detach().resolve_conj().resolve_neg()
        self.dtype = dtype_name(tensor.dtype)
        self.shape = tuple(tensor.shape)
        self.strides = None if tensor.is_contiguous() else tuple(tensor.stride())

    def payload(self) -> Bytes:
        """See `HostArray.payload`."""
        data: Bytes = self._flat().numpy()
        return data

    def require_writable(self) -> None:
        """See `HostArray.require_writable`: torch has no read-only tensors."""

    def store(self, payload: Bytes) -> None:
        """See `HostArray.store`."""
        import torch

        # An in-place operation of torch's own, so that autograd sees the change.
        self._flat().copy_(torch.from_numpy(payload))

    def _flat(self) -> Any:
        import torch

        tensor = self._tensor
        if not self.extent:
            return torch.empty(0, dtype=torch.uint8)
        if self.strides is None:
            flat = tensor.reshape(-1)
        else:
            flat = tensor.as_strided((self.extent,), (1,), tensor.storage_offset())
        return flat.view(torch.uint8)


def view_argument(verified: VerifiedArgument, value: Any) -> HostArray:
    """Return one argument of a call as a `HostArray`.

    Raises
    ------
    llmkernel.errors.BindingError
        When its kind, device, dtype, rank or need of a gradient is not what was verified.
    """
    is_torch = type(value).__module__.split(".")[0] == "torch" and hasattr(value, "requires_grad")
    kind = "torch" if is_torch else "numpy" if isinstance(value, np.ndarray) else type(value).__name__
    text = f"{getattr(value, 'dtype', kind)} {tuple(getattr(value, 'shape', ()))}"
    if kind != verified.kind:
        received = type_text(value)
        step = f"Convert `{verified.name}` to a {verified.kind} array in host memory."
        what = f"a {verified.kind} array is needed, got {received}."
        raise refuse(verified, what, "kind", received=received, next_step=step)
    if is_torch:
        _check_tensor(verified, value, text)
    actual = dtype_name(value.dtype)
    if actual != verified.dtype:
        step = f"Convert it to {verified.dtype}, or generate the kernel for {actual} too."
        raise refuse(verified, f"its dtype is {actual}.", "dtype", received=text, next_step=step)
    if value.ndim != verified.rank:
        raise refuse(
            verified,
            f"it has {value.ndim} {'axis' if value.ndim == 1 else 'axes'}.",
            "rank",
            received=text,
            next_step="Reshape the array.",
        )
    return TorchArray(value) if is_torch else NumpyArray(verified, value)


def _check_tensor(verified: VerifiedArgument, value: Any, text: str) -> None:
    import torch

    name = verified.name
    if value.device.type != "cpu":
        step = f"Pass `{name}.cpu()`: the kernel was accepted on the cpu device."
        raise refuse(verified, f"it is on {value.device}.", "device", received=text, next_step=step)
    if value.layout is not torch.strided:
        step = f"Pass `{name}.to_dense()`."
        raise refuse(verified, "a dense tensor is needed.", "layout", received=text, next_step=step)
    if value.requires_grad and torch.is_grad_enabled():
        step = f"Pass `{name}.detach()`, or call inside `torch.no_grad()`."
        what = "it requires grad, and the kernel has no backward pass."
        raise refuse(verified, what, "grad", received=text, next_step=step)
