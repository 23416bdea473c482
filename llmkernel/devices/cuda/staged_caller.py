"""Accepted kernels on arrays in host memory: copied to the GPU and back."""

from __future__ import annotations

import ctypes
import threading
from typing import Any

import numpy as np

from llmkernel.candidate.arguments import ArrayArgument, CallArgument
from llmkernel.candidate.domain import VerifiedArgument, VerifiedDomain
from llmkernel.devices.base import Bytes
from llmkernel.devices.cuda.driver import STREAM_NON_BLOCKING, Driver, primary_context, require_driver
from llmkernel.devices.cuda.launcher import buffer_bytes
from llmkernel.devices.cuda.refusal import check_count, refuse, scalar_key, scalar_value
from llmkernel.devices.cuda.results import to_numpy, to_torch
from llmkernel.devices.cuda.runtime import CallCache, PreparedCall
from llmkernel.errors import type_text
from llmkernel.problem.dtypes import DTYPES
from llmkernel.problem.signature import ArraySpec

_ALIGNMENT = 256


class StagedCaller:
    """A kernel whose arrays are NumPy arrays or torch tensors in host memory.

    Inputs are made contiguous on the way, so every layout is taken; `inout` arrays are written back in place.

    Parameters
    ----------
    candidate : llmkernel.candidate.candidate.Candidate
    domain : VerifiedDomain
    ordinal : int
        The GPU that computes.
    """

    def __init__(self, candidate: Any, domain: VerifiedDomain, ordinal: int = 0) -> None:
        self._candidate = candidate
        self._domain = domain
        self._ordinal = ordinal
        self._driver: Driver = require_driver()
        self._cache = CallCache(candidate)
        self._lock = threading.Lock()
        self._memory = self._size = self._stream = 0
        arrays = [s for s in candidate.signature.inputs if isinstance(s, ArraySpec)]
        self._is_torch = domain.result_kind == "torch" and not domain.is_result_on_gpu
        self._inout = [s.is_inout for s in arrays]

    def __call__(self, *arguments: Any) -> Any:
        """Copy in, launch, wait, copy out; see `BindingError.reason` for refusals."""
        check_count(self._domain, arguments)
        key: list[Any] = []
        called: list[CallArgument] = []
        arrays: list[np.ndarray[Any, Any]] = []
        for verified, value in zip(self._domain.arguments, arguments, strict=True):
            if verified.kind == "scalar":
                key.append(scalar_key(verified, value))
                called.append(scalar_value(verified, value))
                continue
            array = self._host_array(verified, value)
            arrays.append(array)
            key.append(array.shape)
            called.append(ArrayArgument(verified.dtype, tuple(array.shape)))
        name = tuple(key)
        with self._lock:
            call = self._cache.calls.get(name) or self._cache.prepare(name, called, self._ordinal)
            with primary_context(self._ordinal):
                outputs = self._compute(call, arrays)
        return self._results(call, outputs)

    def _host_array(self, verified: VerifiedArgument, value: Any) -> np.ndarray[Any, Any]:
        """Return the NumPy array (for torch: over the same memory), or raise `BindingError`."""
        name = verified.name
        text = type_text(value)
        if verified.kind == "torch":
            value = self._from_torch(verified, value, text)
        elif not isinstance(value, np.ndarray):
            step = f"Pass `numpy.asarray({name})`."
            raise refuse(
                verified, f"a NumPy array is needed, got {text}.", "kind", received=text, next_step=step
            )
        if value.dtype.newbyteorder("=") != DTYPES[verified.dtype].numpy or not value.dtype.isnative:
            received = f"{value.dtype} {value.shape}"
            step = f"Pass `{name}.astype({verified.dtype!r})`, or generate the kernel for it too."
            raise refuse(verified, f"its dtype is {value.dtype}.", "dtype", received=received, next_step=step)
        array: np.ndarray[Any, Any] = value
        return array

    def _from_torch(self, verified: VerifiedArgument, value: Any, text: str) -> np.ndarray[Any, Any]:
        import torch

        name = verified.name
        if not isinstance(value, torch.Tensor):
            step = f"Pass `torch.as_tensor({name})`."
            raise refuse(
                verified, f"a torch tensor is needed, got {text}.", "kind", received=text, next_step=step
            )
        received = f"{value.dtype} {tuple(value.shape)} on {value.device}"
        if value.device.type != "cpu":
            step = f"Pass `{name}.cpu()`, or generate the kernel for GPU tensors."
            raise refuse(verified, f"it is on {value.device}.", "device", received=received, next_step=step)
        if value.requires_grad and torch.is_grad_enabled():
            what = "it requires grad, and the kernel has no backward pass."
            step = f"Call the kernel under `torch.no_grad()`, or pass `{name}.detach()`."
            raise refuse(verified, what, "grad", received="requires_grad=True", next_step=step)
        return to_numpy(value)

    def _compute(self, call: PreparedCall, arrays: list[np.ndarray[Any, Any]]) -> list[Bytes]:
        driver = self._driver
        if not self._stream:
            self._stream = driver.handle("cuStreamCreate", STREAM_NON_BLOCKING)
        sizes = [buffer_bytes(buffer) for buffer in call.plan.buffers]
        offsets, end = [], 0
        for nbytes in sizes:
            offsets.append(end)
            end += -(-nbytes // _ALIGNMENT) * _ALIGNMENT
        self._reserve(end)
        addresses = [self._memory + offset for offset in offsets]
        staged = [np.ascontiguousarray(array) for array in arrays]
        for array, address in zip(staged, addresses, strict=False):
            if array.nbytes:
                pointer = array.ctypes.data_as(ctypes.c_void_p)
                driver.call("cuMemcpyHtoDAsync_v2", address, pointer, array.nbytes, self._stream)
        call.launch(addresses, self._stream)
        for array, original, address, is_inout in zip(staged, arrays, addresses, self._inout, strict=False):
            if is_inout:
                self._download(array, address)
                if array is not original:
                    np.copyto(original, array.reshape(original.shape))
        outputs = []
        for index in call.results:
            place = len(arrays) + index
            data = np.empty(sizes[place], np.uint8)
            self._download(data, addresses[place])
            outputs.append(data)
        driver.call("cuStreamSynchronize", self._stream)
        return outputs

    def _download(self, array: np.ndarray[Any, Any], address: int) -> None:
        self._driver.call("cuStreamSynchronize", self._stream)
        if array.nbytes:
            self._driver.call("cuMemcpyDtoH_v2", array.ctypes.data_as(ctypes.c_void_p), address, array.nbytes)

    def _reserve(self, nbytes: int) -> None:
        if nbytes > self._size:
            if self._memory:
                self._driver.call("cuMemFree_v2", self._memory)
                self._memory = self._size = 0
            self._memory = self._driver.allocate(nbytes)
            self._size = nbytes

    def _results(self, call: PreparedCall, outputs: list[Bytes]) -> Any:
        results = []
        for index, data in zip(call.results, outputs, strict=True):
            buffer = call.allocated[index]
            array = data.view(DTYPES[buffer.dtype].numpy).reshape(buffer.shape)
            results.append(self._as_result(array))
        if len(results) == 1 and not self._domain.returns_tuple:
            return results[0]
        return tuple(results) if results else None

    def _as_result(self, array: np.ndarray[Any, Any]) -> Any:
        if self._domain.result_kind == "scalar":
            return array[()]
        return to_torch(array) if self._is_torch else array
