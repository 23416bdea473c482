"""The callable that an accepted kernel becomes on this device: host arrays in, host arrays out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from llmkernel.candidate.arguments import ArrayArgument, CallArgument
from llmkernel.candidate.domain import VerifiedArgument, VerifiedDomain
from llmkernel.devices.base import ExecutionOptions, Image, Module
from llmkernel.devices.cpu.execution import execute_in_runner
from llmkernel.devices.cpu.host_arrays import HostArray, empty_array, view_argument
from llmkernel.devices.cuda.refusal import check_count, scalar_value
from llmkernel.devices.plan import LaunchPlan
from llmkernel.errors import LaunchError

if TYPE_CHECKING:
    from llmkernel.devices.cpu.device import CpuDevice

# A call in a notebook is ended by its user, not by a clock; this only ends what nobody waits for any more.
_TIMEOUT_SECONDS = 3600.0


class CpuCaller:
    """A kernel whose arrays are NumPy arrays or torch tensors in host memory.

    Every call runs in a sandboxed process of its own, so `__device__` variables do not live from call to call.

    Parameters
    ----------
    device : CpuDevice
    candidate : llmkernel.candidate.candidate.Candidate
    domain : VerifiedDomain
    """

    def __init__(self, device: CpuDevice, candidate: Any, domain: VerifiedDomain) -> None:
        self._device = device
        self._candidate = candidate
        self._domain = domain
        self._limits = device.limits()
        self._modules: dict[tuple[str, ...], Module] = {}

    def __call__(self, *arguments: Any) -> Any:
        """Run the kernel and return new arrays of the verified kind; `inout` arrays are changed in place.

        Raises
        ------
        llmkernel.errors.BindingError
            Naming the argument and the reason.
        llmkernel.errors.LaunchError
            The run ended in a fault.
        """
        check_count(self._domain, arguments)
        arrays: dict[str, HostArray] = {}
        described: list[CallArgument] = []
        specs = self._candidate.signature.inputs
        for spec, verified, value in zip(specs, self._domain.arguments, arguments, strict=True):
            described.append(self._describe(spec.name, verified, value, arrays))
        plan = self._candidate.plan(described, self._limits)
        for buffer in plan.buffers:
            if buffer.role == "inout":
                arrays[buffer.name].require_writable()
        images = self._images(plan, arrays)
        if plan.launches:
            self._run(plan, images)
        for buffer in plan.buffers:
            if buffer.role == "inout":
                arrays[buffer.name].store(images[buffer.name].payload)
        return self._results(plan, images)

    def _describe(
        self, name: str, verified: VerifiedArgument, value: Any, arrays: dict[str, HostArray]
    ) -> CallArgument:
        """Describe an argument; `name` is the header's, which need not be the reference's."""
        if verified.kind == "scalar":
            return scalar_value(verified, value)
        array = view_argument(verified, value)
        arrays[name] = array
        return ArrayArgument(array.dtype, array.shape, array.strides)

    def _images(self, plan: LaunchPlan, arrays: dict[str, HostArray]) -> dict[str, Image]:
        images = {}
        for buffer in plan.buffers:
            if buffer.name in arrays:
                data = arrays[buffer.name].payload()
            else:
                data = empty_array(buffer.dtype, buffer.shape).reshape(-1).view(np.uint8)
                if buffer.is_zeroed:
                    data[:] = 0
            images[buffer.name] = Image(data, 0, data.nbytes)
        return images

    def _run(self, plan: LaunchPlan, images: dict[str, Image]) -> None:
        kernels = plan.kernels()
        module = self._modules.get(kernels)
        if module is None:
            module = self._modules[kernels] = self._device.compile(self._candidate.source, kernels)
        written = {*plan.results, *(b.name for b in plan.buffers if b.role in ("inout", "output"))}
        options = ExecutionOptions(timeout_seconds=_TIMEOUT_SECONDS, dirties_shared=False)
        (execution,) = execute_in_runner(module.handle, plan, [images], options, written)
        if execution.printed:
            print(execution.printed, end="")  # noqa: T201 - the kernel's own printf
        fault = execution.fault
        if fault is not None:
            raise LaunchError(
                f"The kernel {fault.kernel} did not end well ({fault.kind}).".replace("  ", " "),
                line=int(fault.details.get("launch_line", 0)),
                received=fault.message,
                next_step="Verify the kernel again with arguments like these.",
            )

    def _results(self, plan: LaunchPlan, images: dict[str, Image]) -> Any:
        results: Sequence[Any] = [
            self._wrap(plan.buffer(name).dtype, plan.buffer(name).shape, images[name])
            for name in plan.results
        ]
        if len(results) == 1 and not self._domain.returns_tuple:
            return results[0]
        return tuple(results) if results else None

    def _wrap(self, dtype: str, shape: tuple[int, ...], image: Image) -> Any:
        if self._domain.result_kind == "torch":
            import torch

            flat = torch.from_numpy(image.payload)
            # torch cannot view zero bytes as wider elements of a shape.
            if not flat.numel():
                return torch.empty(shape, dtype=getattr(torch, dtype))
            return flat.view(getattr(torch, dtype)).reshape(shape)
        result = empty_array(dtype, shape)
        result.reshape(-1).view(np.uint8)[:] = image.payload
        return result
