"""Accepted kernels on PyTorch tensors in GPU memory: no conversion, no copy, no wait."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NoReturn

from llmkernel.candidate.arguments import ArrayArgument, CallArgument
from llmkernel.candidate.domain import VerifiedArgument, VerifiedDomain
from llmkernel.candidate.layout import contiguous_strides
from llmkernel.devices.cuda.refusal import (
    alignment_class,
    check_count,
    check_overlap,
    refuse,
    scalar_key,
    scalar_value,
)
from llmkernel.devices.cuda.runtime import CallCache, PreparedCall
from llmkernel.devices.cuda.torch_fast import Bind, fast_path
from llmkernel.errors import BindingError, type_text
from llmkernel.problem.signature import ArraySpec


class TorchCaller:
    """A kernel whose arrays are torch tensors on one GPU, on torch's current stream.

    Outputs and scratch come from torch's allocator, so memory is reused in stream order and calls can be
    captured into a CUDA graph (after one call with the same shapes outside of it).

    Parameters
    ----------
    candidate : llmkernel.candidate.candidate.Candidate
    domain : VerifiedDomain
    """

    def __init__(self, candidate: Any, domain: VerifiedDomain) -> None:
        import torch

        self._torch = torch
        self._candidate = candidate
        self._domain = domain
        self._cache = CallCache(candidate)
        self._calls = self._cache.calls
        # What torch's compiled code calls: a third of the time of torch.empty, on the current device only.
        self._empty_here = getattr(torch._C._dynamo.guards, "_empty_strided_cuda", None)  # noqa: SLF001
        self._stream = torch._C._cuda_getCurrentRawStream  # noqa: SLF001 - what torch's own compiled code calls
        self._is_grad_enabled = torch.is_grad_enabled
        self._has_one_gpu = torch.cuda.device_count() == 1
        self._current_device = torch.cuda.current_device
        self._devices = [torch.device("cuda", i) for i in range(torch.cuda.device_count())]
        specs = candidate.signature.inputs
        facts = candidate.facts_needed
        # An argument is a scalar (None), or: torch dtype, strides matter, address matters, complex.
        self._checks: list[tuple[VerifiedArgument, tuple[Any, bool, bool, bool] | None]] = []
        for argument, spec in zip(domain.arguments, specs, strict=True):
            check = None
            if argument.kind != "scalar":
                dtype = getattr(torch, argument.dtype)
                is_strided = isinstance(spec, ArraySpec) and spec.is_strided
                check = (dtype, is_strided, spec.name in facts, dtype.is_complex)
            self._checks.append((argument, check))
        arrays = [spec for spec in specs if isinstance(spec, ArraySpec)]
        self._arrays = [a for a in domain.arguments if a.kind != "scalar"]
        self._returns_tuple = domain.returns_tuple
        self._recent: tuple[Any, PreparedCall] | None = None
        self._fast: Callable[..., Any] | None = None
        # Told of every shorter way that is found, so that its owner can call that directly.
        self.on_fast: Callable[[Bind], None] | None = None
        self._inout = [index for index, spec in enumerate(arrays) if spec.is_inout]
        is_plain = not facts and not self._inout and len(arrays) == len(specs) and not self._returns_tuple
        self._may_be_fast = is_plain and self._has_one_gpu and self._empty_here is not None

    def __call__(self, *arguments: Any) -> Any:
        """Launch on torch's current stream and return new tensors; see `BindingError.reason` for refusals."""
        if self._fast is not None:
            return self._fast(None, *arguments)
        return self._general(*arguments)

    def _general(self, *arguments: Any) -> Any:
        if len(arguments) != len(self._checks):
            check_count(self._domain, arguments)
        key: list[Any] = []
        addresses: list[int] = []
        ordinal = -1
        is_grad_enabled = self._is_grad_enabled()
        try:
            for (verified, check), value in zip(self._checks, arguments):  # noqa: B905 - counted
                if check is None:
                    key.append(scalar_key(verified, value))
                    continue
                dtype, is_strided, needs_address, is_complex = check
                index = value.get_device()
                if (
                    value.dtype is not dtype
                    or index != ordinal >= 0
                    or index < 0
                    or (is_grad_enabled and value.requires_grad)
                    or value.is_neg()
                    or (is_complex and value.is_conj())
                    or not (is_strided or value.is_contiguous())
                ):
                    self._refuse(arguments)
                ordinal = index
                address = value.data_ptr()
                addresses.append(address)
                key.append(value.shape)
                if is_strided:
                    key.append(value.stride())
                if needs_address:
                    key.append(alignment_class(address))
        except (AttributeError, RuntimeError, NotImplementedError) as error:
            self._refuse(arguments, error)
        if ordinal < 0:
            ordinal = self._current_device()
        key.append(ordinal)
        name = tuple(key)
        call = self._calls.get(name)
        if call is None:
            call = self._cache.prepare(name, self._call_arguments(arguments), ordinal)
            call.recipe = [
                (b.shape, contiguous_strides(b.shape), getattr(self._torch, b.dtype)) for b in call.allocated
            ]
        if self._may_be_fast and self._recent is not None and self._recent[1] is call:
            # The second call in a row of one kind: the next of that kind need not be looked at in Python.
            bind = fast_path(self._torch, call, arguments, ordinal)
            self._may_be_fast = bind is not None  # what cannot be recognised is not tried again
            if bind is not None:
                self._fast = bind(self._general)
                if self.on_fast is not None:
                    self.on_fast(bind)
        self._recent = (name, call)
        return self._launch(call, arguments, addresses, ordinal)

    def _launch(
        self, call: PreparedCall, arguments: tuple[Any, ...], addresses: list[int], ordinal: int
    ) -> Any:
        if self._inout:
            check_overlap(self._arrays, self._inout, addresses, call.input_sizes)
        is_here = self._has_one_gpu or self._current_device() == ordinal
        empty = self._empty_here
        if empty is None or not is_here:
            empty = functools.partial(self._empty_on, self._devices[ordinal])
        tensors = []
        for shape, strides, dtype in call.recipe:
            tensor = empty(shape, strides, dtype)
            tensors.append(tensor)
            addresses.append(tensor.data_ptr())
        stream = self._stream(ordinal)
        if is_here:
            call.launch(addresses, stream)
        else:
            call.launch_elsewhere(addresses, stream)
        if self._inout:
            self._mark_changed(arguments)
        results = call.results
        if len(results) == 1 and not self._returns_tuple:
            return tensors[results[0]]
        return tuple([tensors[index] for index in results]) if results else None

    def _empty_on(self, device: Any, shape: tuple[int, ...], strides: tuple[int, ...], dtype: Any) -> Any:
        return self._torch.empty_strided(shape, strides, dtype=dtype, device=device)

    def _mark_changed(self, arguments: tuple[Any, ...]) -> None:
        """Tell autograd that tensors changed in place, as torch's own in-place operations do."""
        arrays = [a for a, (_, check) in zip(arguments, self._checks, strict=True) if check is not None]
        for index in self._inout:
            self._torch.autograd.graph.increment_version(arrays[index])

    def _call_arguments(self, arguments: tuple[Any, ...]) -> list[CallArgument]:
        found: list[CallArgument] = []
        for (verified, check), value in zip(self._checks, arguments, strict=True):
            if check is None:
                found.append(scalar_value(verified, value))
                continue
            address = alignment_class(value.data_ptr())
            strides = None if value.is_contiguous() else tuple(value.stride())
            found.append(ArrayArgument(verified.dtype, tuple(value.shape), strides, address))
        return found

    def _refuse(self, arguments: tuple[Any, ...], cause: BaseException | None = None) -> NoReturn:
        """Raise the `BindingError` that says which argument does not fit and why."""
        ordinal = -1
        for (verified, check), value in zip(self._checks, arguments, strict=True):
            if check is None:
                continue
            error = self._problem(verified, check[0], value, ordinal)
            if error is not None:
                raise error from cause
            ordinal = value.get_device()
        # What is left is the layout, which the header decides.
        self._candidate.bind(self._call_arguments(arguments))
        raise BindingError("The arguments cannot be used.", received=str(cause)) from cause

    def _problem(
        self, verified: VerifiedArgument, dtype: Any, value: Any, ordinal: int
    ) -> BindingError | None:
        torch = self._torch
        name = verified.name
        if not isinstance(value, torch.Tensor):
            text = type_text(value)
            step = f"Pass `torch.as_tensor({name}, device='cuda')`."
            return refuse(
                verified, f"a torch tensor is needed, got {text}.", "kind", received=text, next_step=step
            )
        text = f"{value.dtype} {tuple(value.shape)} on {value.device}"
        if value.layout is not torch.strided:
            step = f"Pass `{name}.to_dense()`."
            return refuse(verified, "a dense tensor is needed.", "layout", received=text, next_step=step)
        if value.device.type != "cuda":
            step = f"Pass `{name}.cuda()`."
            return refuse(verified, f"it is on {value.device}.", "device", received=text, next_step=step)
        if value.get_device() != ordinal >= 0:
            what, step = (
                "it is on another GPU than the arguments before it.",
                "Move all arguments to one GPU.",
            )
            return refuse(verified, what, "device", received=text, next_step=step)
        if value.dtype is not dtype:
            step = f"Pass `{name}.to({dtype})`, or generate the kernel for {value.dtype} too."
            return refuse(verified, f"its dtype is {value.dtype}.", "dtype", received=text, next_step=step)
        if value.requires_grad and torch.is_grad_enabled():
            what = "it requires grad, and the kernel has no backward pass."
            step = f"Call the kernel under `torch.no_grad()`, or pass `{name}.detach()`."
            return refuse(verified, what, "grad", received="requires_grad=True", next_step=step)
        if value.is_neg() or (dtype.is_complex and value.is_conj()):
            what = "it is a lazily conjugated or negated view, whose memory holds other values."
            step = f"Pass `{name}.resolve_conj().resolve_neg()`."
            return refuse(verified, what, "layout", received=text, next_step=step)
        return None
