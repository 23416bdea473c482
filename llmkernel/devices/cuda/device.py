"""The `cuda` device."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from llmkernel.devices.base import (
    Bytes,
    Device,
    DeviceLimits,
    Execution,
    ExecutionOptions,
    Fault,
    Image,
    KernelResources,
    Module,
    Sampler,
)
from llmkernel.devices.cuda import compiler, facts, faults, memory, toolchain
from llmkernel.devices.cuda.driver import (
    EVENT_DEFAULT,
    NOT_READY,
    OUT_OF_MEMORY,
    STREAM_NON_BLOCKING,
    DriverError,
    load_driver,
    primary_context,
    require_driver,
)
from llmkernel.devices.cuda.launcher import PreparedPlan
from llmkernel.devices.cuda.support import Support
from llmkernel.devices.plan import LaunchPlan
from llmkernel.errors import DeviceError, DeviceUnavailableError

_SPIN_SECONDS = 0.0005
_POLL_SECONDS = 0.0001
_EXTRA = "pip install 'llmkernel[cuda]'"


@dataclass
class Handle:
    """`Module.handle` of this device.

    Attributes
    ----------
    compiled : CachedBinary
    loaded : LoadedModule or None
        None for a module that was compiled for another architecture.
    """

    compiled: compiler.CachedBinary
    loaded: compiler.LoadedModule | None


class CudaDevice(Device):
    """One NVIDIA GPU.

    Parameters
    ----------
    ordinal : int
        Among the visible GPUs.

    Attributes
    ----------
    is_lost : bool
        A fault ended the context: nothing runs in this process any more.

    Raises
    ------
    llmkernel.errors.DeviceUnavailableError
        See `unavailable_reason`.
    """

    name: ClassVar[str] = "cuda"

    def __init__(self, ordinal: int = 0) -> None:
        reason = self.unavailable_reason()
        if reason is not None:
            raise DeviceUnavailableError(reason)
        self.driver = require_driver()
        count = self.driver.device_count()
        if not 0 <= ordinal < count:
            raise DeviceUnavailableError(
                f"There is no GPU {ordinal}.",
                rule=f"{count} {'GPU is' if count == 1 else 'GPUs are'} visible, counted from 0",
                received=str(ordinal),
                next_step="Check CUDA_VISIBLE_DEVICES.",
            )
        self.ordinal = ordinal
        self._limits = facts.device_limits(self.driver, ordinal)
        self._arena = memory.Arena(self.driver, seed=ordinal)
        self.is_lost = False
        # Made with the context, by the first call that needs it: limits and versions do not.
        self._stream = 0
        self._events: list[int] = []

    @classmethod
    def unavailable_reason(cls) -> str | None:
        """Return None where a GPU can be used, else one sentence with the next step. Creates no context."""
        driver = load_driver()
        if driver is None:
            return "No NVIDIA driver was found: install the driver, or use the cpu device (`--device cpu`)."
        if driver.is_forked:
            return (
                "This process was forked from one that had initialised CUDA, and cannot use it: start it with "
                '`multiprocessing.get_context("spawn")`.'
            )
        if driver.device_count() == 0:
            return "The NVIDIA driver shows no GPU: check `nvidia-smi` and CUDA_VISIBLE_DEVICES."
        if importlib.util.find_spec("cupy") is None:
            return f"CuPy is not installed: `{_EXTRA}`."
        nvrtc = toolchain.nvrtc_version()
        if nvrtc is None:
            return f"NVRTC, the CUDA compiler library, or its Python binding is not installed: `{_EXTRA}`."
        if driver.version()[0] < nvrtc[0]:
            have, need = driver.version()[0], nvrtc[0]
            return (
                f"The NVIDIA driver supports CUDA {have} and NVRTC is of CUDA {need}: update the driver, "
                f"or install the packages for CUDA {have}."
            )
        return None

    def limits(self) -> DeviceLimits:
        """Return what a launch may ask for."""
        return self._limits

    def versions(self) -> dict[str, str]:
        """Return driver, NVRTC, CuPy, GPU, architecture, clocks and temperature (where NVML is installed)."""
        return facts.versions(self.driver, self.ordinal, self._limits)

    def warm_up(self) -> None:
        """Make the context, import CuPy and load the helper kernels: about a second that a candidate then saves."""
        importlib.import_module("cupy")
        self._make_current()
        self._support.fill_shared(0, self._stream)
        self.driver.call("cuStreamSynchronize", self._stream)

    def compile(self, source: str, kernels: Sequence[str], *, arch: str | None = None) -> Module:
        """Compile with NVRTC and load through `cupy.RawModule`.

        For an `arch` other than the device's own nothing is loaded: such a module has resources, and cannot
        run.
        """
        target = arch or self._limits.arch
        compiled = compiler.compile_cached(source, tuple(kernels), target)
        resources: dict[str, KernelResources] = compiled.binary.resources
        loaded = None
        if target == self._limits.arch:
            self._make_current()
            loaded = compiler.load_raw_module(compiled, self.ordinal)
            resources = compiler.loaded_resources(self.driver, loaded, compiled.binary)
        return Module(
            source=source,
            kernels=tuple(kernels),
            compile_seconds=compiled.seconds,
            is_cached=compiled.is_cached,
            warnings=tuple(d for d in compiled.binary.diagnostics if d.severity == "warning"),
            resources=resources,
            options=compiled.binary.options,
            handle=Handle(compiled, loaded),
        )

    def occupancy(self, module: Module, plan: LaunchPlan) -> dict[str, KernelResources]:
        """Return the resources of the launched kernels, with the occupancy (0 to 1) that `plan` gives."""
        loaded = self._loaded(module)
        prepared = PreparedPlan(self.driver, loaded.functions, plan, self._limits)
        found: dict[str, KernelResources] = {}
        for launch in plan.launches:
            blocks = prepared.resident_blocks(loaded.functions[launch.kernel], launch)
            threads = blocks * launch.block[0] * launch.block[1] * launch.block[2]
            fraction = threads / facts.threads_per_multiprocessor(self.driver, self.ordinal)
            kept = found.get(launch.kernel, module.resources[launch.kernel])
            found[launch.kernel] = replace(kept, occupancy=max(fraction, kept.occupancy or 0.0))
        return found

    def execute(
        self, module: Module, plan: LaunchPlan, images: Mapping[str, Image], options: ExecutionOptions
    ) -> Execution:
        """Run `plan` once; each kernel is waited for, so that a fault names it."""
        return self.execute_many(module, plan, [images], options)[0]

    def execute_many(
        self,
        module: Module,
        plan: LaunchPlan,
        runs: Sequence[Mapping[str, Image]],
        options: ExecutionOptions,
    ) -> list[Execution]:
        """Run `plan` once for each mapping in `runs` over one load of the module, up to the first fault."""
        self._make_current()
        executions: list[Execution] = []
        try:
            with ExitStack() as stack:
                loaded = self._loaded(module)
                if options.is_fresh_module:
                    loaded = compiler.load_fresh(self.driver, module.handle.compiled.binary)
                    stack.callback(self._unload, loaded)
                prepared = PreparedPlan(self.driver, loaded.functions, plan, self._limits)
                for images in runs:
                    executions.append(self._execute(module, prepared, images, options))
                    if executions[-1].fault is not None:
                        break
        except DriverError as error:
            if error.code != OUT_OF_MEMORY and not error.is_context_lost:
                raise
            self.is_lost = self.is_lost or error.is_context_lost
            executions.append(Execution(0.0, faults.fault_from_error(error, "", module.source)))
        return executions

    def _execute(
        self, module: Module, prepared: PreparedPlan, images: Mapping[str, Image], options: ExecutionOptions
    ) -> Execution:
        places = self._arena.place(images, [b.name for b in prepared.plan.buffers])
        for name, address in places.items():
            memory.upload(self.driver, address, images[name], self._stream)
        if options.dirties_shared:
            self._support.fill_shared(options.seed, self._stream)
        execution = self._run(prepared, module, images, places, options)
        if not self.is_lost:
            for name, address in places.items():
                memory.download(self.driver, images[name], address)
        return execution

    def sampler(self, module: Module, plan: LaunchPlan, draws: Sequence[Mapping[str, Bytes]]) -> Sampler:
        """Prepare timing of `plan` over at least one draw of its inputs."""
        from llmkernel.devices.cuda.timing import CudaSampler

        self._make_current()
        return CudaSampler(self, self._loaded(module), plan, draws)

    def roofline(self, dtypes: Sequence[str]) -> dict[str, Any]:
        """Measure copy bandwidth and matrix rates; a dtype without a matrix rate is left out."""
        from llmkernel.devices.cuda import bandwidth

        self._make_current()
        rates: dict[str, float] = {}
        for dtype in dtypes:
            rate = bandwidth.matrix_rate(dtype, self.ordinal) if dtype in bandwidth.MATRIX_DTYPES else None
            if rate is not None:
                rates[dtype] = 1e12 * rate
        return {
            "bandwidth_bytes_per_s": 1e12 * bandwidth.copy_bandwidth(self.ordinal),
            "operations_per_s": rates,
        }

    def note_error(self, error: DriverError) -> None:
        """Remember that an error outside of `execute` lost the context."""
        self.is_lost = self.is_lost or error.is_context_lost

    def caller(self, candidate: Any, domain: Any) -> Callable[..., Any]:
        """Return the accepted kernel as a callable over NumPy, CuPy or torch arrays, as `domain` says."""
        from llmkernel.devices.cuda.caller import make_caller

        return make_caller(candidate, domain, self.ordinal)

    def close(self) -> None:
        """Free everything; nothing can be freed in a lost context, which ends with the process."""
        if self.is_lost or not self._stream:
            return
        self._make_current()
        self._arena.free()
        for event in self._events:
            self.driver.call("cuEventDestroy_v2", event)
        self.driver.call("cuStreamDestroy_v2", self._stream)
        self._stream, self._events = 0, []

    @functools.cached_property
    def _support(self) -> Support:
        return Support(self.driver, self._limits)

    def _make_current(self) -> None:
        if self.is_lost:
            raise DeviceError(
                "The CUDA context of this process was lost to an earlier fault.",
                next_step="Start a new evaluation worker.",
            )
        primary_context(self.ordinal).make_current()
        if not self._stream:
            self._stream = self.driver.handle("cuStreamCreate", STREAM_NON_BLOCKING)
            self._events = [self.driver.handle("cuEventCreate", EVENT_DEFAULT) for _ in range(2)]

    def _loaded(self, module: Module) -> compiler.LoadedModule:
        loaded: compiler.LoadedModule | None = module.handle.loaded
        if loaded is None:
            raise DeviceError(
                f"This module was compiled for another architecture than {self._limits.arch}.",
                next_step="Compile it without `arch` to run it here.",
            )
        return loaded

    def _unload(self, loaded: compiler.LoadedModule) -> None:
        if not self.is_lost:
            loaded.unload(self.driver)

    def _run(
        self,
        prepared: PreparedPlan,
        module: Module,
        images: Mapping[str, Image],
        places: Mapping[str, int],
        options: ExecutionOptions,
    ) -> Execution:
        addresses = [places[b.name] + images[b.name].offset for b in prepared.plan.buffers]
        is_printing = "printf" in module.source or "assert" in module.source
        with faults.captured_output(is_wanted=is_printing) as printed:
            elapsed, kernel, failure = self._launch_all(prepared, addresses, options)
        if failure is None:
            return Execution(elapsed, None, printed.text)
        if isinstance(failure, DriverError):
            fault = faults.fault_from_error(failure, kernel, module.source, printed.text)
        else:
            where = f" in {kernel}" if kernel else ""
            message = f"The kernel was still running after {options.timeout_seconds:g} s{where}."
            details = {"is_context_lost": True, "timeout_seconds": options.timeout_seconds}
            fault = Fault("timeout", message, kernel, details)
        self.is_lost = bool(fault.details["is_context_lost"])
        return Execution(elapsed, fault, printed.text)

    def _launch_all(
        self, prepared: PreparedPlan, addresses: Sequence[int], options: ExecutionOptions
    ) -> tuple[float, str, DriverError | TimeoutError | None]:
        """Return milliseconds, the kernel that ran last, and what ended the run early."""
        driver, stream = self.driver, self._stream
        deadline = time.monotonic() + options.timeout_seconds
        kernel = ""
        try:
            self._wait(deadline)
            driver.call("cuEventRecord", self._events[0], stream)
            prepared.zero(addresses, stream)
            for launch in prepared.launches:
                kernel = launch.launch.kernel
                prepared.launch_one(launch, addresses, stream)
                self._wait(deadline)
            driver.call("cuEventRecord", self._events[1], stream)
            # The driver writes out what kernels printed when a whole context is waited for.
            driver.call("cuCtxSynchronize")
            return driver.elapsed_ms(*self._events), kernel, None
        except (DriverError, TimeoutError) as error:
            return 0.0, kernel, error

    def _wait(self, deadline: float) -> None:
        """Wait for the stream; `TimeoutError` after the deadline. A blocking wait could not be ended."""
        query = self.driver.raw["cuStreamQuery"]
        spin_until = time.monotonic() + _SPIN_SECONDS
        while True:
            code = query(self._stream)
            if code == 0:
                return
            if code != NOT_READY:
                raise self.driver.error(code, "cuStreamQuery")
            now = time.monotonic()
            if now > deadline:
                raise TimeoutError
            if now > spin_until:
                time.sleep(_POLL_SECONDS)
