"""The `cpu` device: the same CUDA C++, compiled for the host and run in a sandbox."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from llmkernel.devices.base import (
    Bytes,
    Device,
    DeviceLimits,
    Execution,
    ExecutionOptions,
    Image,
    KernelResources,
    Module,
    Sampler,
)
from llmkernel.devices.cpu.build import BuiltModule, build, check_compiler
from llmkernel.devices.cpu.execution import check_limits, execute_in_runner
from llmkernel.devices.cpu.job import MAX_WORKERS
from llmkernel.devices.cpu.toolchain import find_toolchain
from llmkernel.devices.plan import LaunchPlan
from llmkernel.errors import ConfigurationError, DeviceUnavailableError

MAX_SHARED_BYTES = 227 * 1024


class CpuDevice(Device):
    """CUDA C++ on the host's processor: real results, and timings that are only emulation.

    Blocks run on eight OS threads on every host, so that a launch header that asks for `num_sms` plans the
    same launches, and kernels whose blocks wait for one another behave the same, everywhere.
    """

    name: ClassVar[str] = "cpu"
    is_emulation: ClassVar[bool] = True
    # The end of a buffer lies against unmapped memory: no room for a guard, and no need of one.
    back_guard_bytes: ClassVar[int] = 0

    @classmethod
    def unavailable_reason(cls) -> str | None:
        """Return None on Linux x86-64 with a compiler, else one sentence with the next step."""
        if sys.platform != "linux" or platform.machine() not in ("x86_64", "AMD64"):
            return (
                f"The cpu device runs on Linux x86-64, not on {sys.platform} {platform.machine()}: "
                "use a machine or container with it, or the cuda device."
            )
        try:
            find_toolchain()
        except (DeviceUnavailableError, ConfigurationError) as error:
            return f"{error.what} {error.next_step or ''}".strip()
        return None

    def limits(self) -> DeviceLimits:
        """Return what a launch may ask for; the same on every host but for its memory."""
        return DeviceLimits(
            device=self.name,
            name=f"CPU ({platform.machine()})",
            arch="host",
            num_sms=MAX_WORKERS,
            max_shared_bytes=MAX_SHARED_BYTES,
            memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        )

    def versions(self) -> dict[str, str]:
        """Return the compiler and the host."""
        toolchain = find_toolchain()
        libc, version = platform.libc_ver()
        return {
            "device": self.name,
            "compiler": toolchain.version,
            "compiler_kind": toolchain.kind,
            "libc": f"{libc} {version}".strip(),
            "machine": platform.machine(),
            "system": f"{platform.system()} {platform.release()}",
        }

    def warm_up(self) -> None:
        """Make sure that the compiler runs, also inside a sandbox."""
        check_compiler()

    def compile(self, source: str, kernels: Sequence[str], *, arch: str | None = None) -> Module:
        """Compile a candidate for the host; see `Device.compile`.

        `arch` only decides what ``__CUDA_ARCH__`` is (800 by default).
        """
        names = tuple(dict.fromkeys(kernels))
        built = build(source, names, arch)
        resources = {name: KernelResources(max_threads_per_block=1024) for name in names}
        if len(names) == 1:
            resources[names[0]] = KernelResources(
                max_threads_per_block=1024, static_shared_bytes=built.static_shared_bytes
            )
        return Module(
            source=source,
            kernels=names,
            compile_seconds=built.seconds,
            is_cached=built.is_cached,
            warnings=built.warnings,
            resources=resources,
            options=built.options,
            handle=built,
        )

    def execute(
        self, module: Module, plan: LaunchPlan, images: Mapping[str, Image], options: ExecutionOptions
    ) -> Execution:
        """Run `plan` once in a process of its own; see `Device.execute`.

        `__device__` variables therefore always start from their initialisers; see `execute_many`.
        """
        return self.execute_many(module, plan, [images], options)[0]

    def execute_many(
        self, module: Module, plan: LaunchPlan, runs: Sequence[Mapping[str, Image]], options: ExecutionOptions
    ) -> list[Execution]:
        """Run `plan` once for each mapping in `runs`, in one process; see `Device.execute_many`.

        What was printed is in the first `Execution`.
        """
        check_limits(plan, self.limits())
        built = module.handle
        assert isinstance(built, BuiltModule)
        return execute_in_runner(built, plan, runs, options)

    def sampler(self, module: Module, plan: LaunchPlan, draws: Sequence[Mapping[str, Bytes]]) -> Sampler:
        """Prepare timing: wall time inside the runner, which says nothing about a GPU."""
        from llmkernel.devices.cpu.sampler import CpuSampler

        return CpuSampler(self, module, plan, draws)

    def caller(self, candidate: Any, domain: Any) -> Callable[..., Any]:
        """Return the callable of an accepted candidate, for NumPy arrays and torch tensors in host memory."""
        from llmkernel.devices.cpu.caller import CpuCaller

        return CpuCaller(self, candidate, domain)
