"""Accepted kernels on CuPy arrays: on CuPy's current stream, with memory from CuPy's pool."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from llmkernel.candidate.arguments import ArrayArgument, CallArgument
from llmkernel.candidate.domain import VerifiedArgument, VerifiedDomain
from llmkernel.devices.cuda.refusal import (
    alignment_class,
    check_count,
    check_overlap,
    refuse,
    scalar_key,
    scalar_value,
)
from llmkernel.devices.cuda.runtime import CallCache, PreparedCall
from llmkernel.errors import BindingError, type_text
from llmkernel.problem.dtypes import DTYPES
from llmkernel.problem.signature import ArraySpec


class CupyCaller:
    """A kernel whose arrays are CuPy arrays on one GPU.

    Parameters
    ----------
    candidate : llmkernel.candidate.candidate.Candidate
    domain : VerifiedDomain
    """

    def __init__(self, candidate: Any, domain: VerifiedDomain) -> None:
        import cupy

        self._cupy = cupy
        self._new = cupy.ndarray  # what cupy.empty calls
        self._candidate = candidate
        self._domain = domain
        self._cache = CallCache(candidate)
        self._calls = self._cache.calls
        facts = candidate.facts_needed
        # An argument is a scalar (None), or: NumPy dtype, strides matter, address matters.
        self._checks: list[tuple[VerifiedArgument, tuple[np.dtype[Any], bool, bool] | None]] = []
        for argument, spec in zip(domain.arguments, candidate.signature.inputs, strict=True):
            check = None
            if argument.kind != "scalar":
                is_strided = isinstance(spec, ArraySpec) and spec.is_strided
                check = (DTYPES[argument.dtype].numpy, is_strided, spec.name in facts)
            self._checks.append((argument, check))
        specs = [s for s in candidate.signature.inputs if isinstance(s, ArraySpec)]
        self._inout = [index for index, spec in enumerate(specs) if spec.is_inout]
        self._arrays = [a for a in domain.arguments if a.kind != "scalar"]

    def __call__(self, *arguments: Any) -> Any:
        """Launch on CuPy's current stream and return new arrays; see `BindingError.reason` for refusals."""
        if len(arguments) != len(self._checks):
            check_count(self._domain, arguments)
        key: list[Any] = []
        addresses: list[int] = []
        ordinal = -1
        try:
            for (verified, check), value in zip(self._checks, arguments):  # noqa: B905 - counted
                if check is None:
                    key.append(scalar_key(verified, value))
                    continue
                dtype, is_strided, needs_address = check
                pointer = value.data
                index = pointer.device_id
                if (
                    value.dtype != dtype
                    or index != ordinal >= 0
                    or not (is_strided or value.flags.c_contiguous)
                ):
                    self._refuse(arguments)
                ordinal = index
                address = pointer.ptr
                addresses.append(address)
                key.append(value.shape)
                if is_strided:
                    key.append(value.strides)
                if needs_address:
                    key.append(alignment_class(address))
        except AttributeError as error:
            self._refuse(arguments, error)
        current = self._cupy.cuda.runtime.getDevice()
        if ordinal < 0:
            ordinal = current
        key.append(ordinal)
        name = tuple(key)
        call = self._calls.get(name)
        if call is None:
            call = self._cache.prepare(name, self._call_arguments(arguments), ordinal)
            call.recipe = [(b.shape, DTYPES[b.dtype].numpy) for b in call.allocated]
        if ordinal == current:
            return self._launch(call, addresses)
        with self._cupy.cuda.Device(ordinal):
            return self._launch(call, addresses)

    def _launch(self, call: PreparedCall, addresses: list[int]) -> Any:
        if self._inout:
            check_overlap(self._arrays, self._inout, addresses, call.input_sizes)
        arrays = []
        for shape, dtype in call.recipe:
            array = self._new(shape, dtype)
            arrays.append(array)
            addresses.append(array.data.ptr)
        call.launch(addresses, self._cupy.cuda.get_current_stream().ptr)
        results = call.results
        if len(results) == 1 and not self._domain.returns_tuple:
            return arrays[results[0]]
        return tuple([arrays[index] for index in results]) if results else None

    def _call_arguments(self, arguments: tuple[Any, ...]) -> list[CallArgument]:
        found: list[CallArgument] = []
        for (verified, check), value in zip(self._checks, arguments, strict=True):
            if check is None:
                found.append(scalar_value(verified, value))
                continue
            strides = None
            if not value.flags.c_contiguous:
                strides = tuple(s // value.itemsize for s in value.strides)
                if min(value.strides) < 0 or any(s % value.itemsize for s in value.strides):
                    # No draw has such strides; nothing is known of a kernel that reads them.
                    raise refuse(
                        verified,
                        "its elements run backwards or lie between places that its dtype can have.",
                        "layout",
                        received=f"strides {value.strides} bytes",
                        next_step=f"Pass `cupy.ascontiguousarray({verified.name})`.",
                    )
            address = alignment_class(value.data.ptr)
            found.append(ArrayArgument(verified.dtype, tuple(value.shape), strides, address))
        return found

    def _refuse(self, arguments: tuple[Any, ...], cause: BaseException | None = None) -> NoReturn:
        """Raise the `BindingError` that says which argument does not fit and why."""
        ordinal = -1
        for (verified, check), value in zip(self._checks, arguments, strict=True):
            if check is None:
                continue
            name = verified.name
            if not isinstance(value, self._cupy.ndarray):
                text = type_text(value)
                step = f"Pass `cupy.asarray({name})`."
                what = f"a CuPy array is needed, got {text}."
                raise refuse(verified, what, "kind", received=text, next_step=step) from cause
            text = f"{value.dtype} {value.shape} on GPU {value.data.device_id}"
            if value.data.device_id != ordinal >= 0:
                what, step = "it is on another GPU than the arguments before it.", "Move all to one GPU."
                raise refuse(verified, what, "device", received=text, next_step=step)
            ordinal = value.data.device_id
            if value.dtype != check[0]:
                step = f"Pass `{name}.astype({verified.dtype!r})`, or generate the kernel for it too."
                what = f"its dtype is {value.dtype}."
                raise refuse(verified, what, "dtype", received=text, next_step=step)
        # What is left is the layout, which the header decides.
        self._candidate.bind(self._call_arguments(arguments))
        raise BindingError("The arguments cannot be used.", received=str(cause)) from cause
