"""The interface that every device stands behind.

A device compiles a candidate and runs launch plans. It is used in two places: inside the evaluation worker
(`compile`, `execute`, `sampler`) and, for an accepted kernel only, in the notebook's process (`caller`).
Another device is another folder beside `cuda` and `cpu` with one subclass of `Device`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from llmkernel.devices.plan import LaunchPlan

Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class DeviceLimits:
    """What a launch may ask of a device.

    Attributes
    ----------
    device : str
        ``cuda`` or ``cpu``.
    name : str
        Marketing name, such as ``NVIDIA H200``.
    arch : str
        ``sm_90a``, or ``host`` on the `cpu` device.
    num_sms : int
        Multiprocessors (host threads on `cpu`).
    max_threads_per_block : int
    max_block, max_grid : tuple of int
        x, y, z.
    max_shared_bytes : int
        Static plus dynamic shared memory of a block, after opting in.
    max_cluster_size : int
        Blocks a cluster; 1 where there are no clusters.
    supports_cooperative, supports_tma : bool
    memory_bytes, l2_bytes : int
    """

    device: str
    name: str
    arch: str
    num_sms: int
    max_threads_per_block: int = 1024
    max_block: tuple[int, int, int] = (1024, 1024, 64)
    max_grid: tuple[int, int, int] = (2**31 - 1, 65535, 65535)
    max_shared_bytes: int = 48 * 1024
    max_cluster_size: int = 1
    supports_cooperative: bool = False
    supports_tma: bool = False
    memory_bytes: int = 0
    l2_bytes: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-able data."""
        return asdict(self)


@dataclass(frozen=True)
class Diagnostic:
    """One message of a compiler.

    Attributes
    ----------
    severity : str
        ``error`` or ``warning``.
    line, column : int
        1-based place in the `.cu` file; 0 when unknown.
    message : str
    """

    severity: str
    line: int
    column: int
    message: str


@dataclass(frozen=True)
class KernelResources:
    """What one compiled kernel uses; None where the device cannot tell."""

    registers: int | None = None
    spill_bytes: int | None = None
    local_bytes: int | None = None
    static_shared_bytes: int | None = None
    max_threads_per_block: int | None = None
    occupancy: float | None = None


@dataclass
class Module:
    """A compiled candidate, as a device keeps it.

    Attributes
    ----------
    source : str
    kernels : tuple of str
        Name expressions that can be launched.
    compile_seconds : float
    is_cached : bool
        Taken from the compile cache: `compile_seconds` is then the time of the look-up.
    warnings : tuple of Diagnostic
    resources : dict
        Name expression to `KernelResources`.
    options : tuple of str
        Effective compiler options.
    handle : object
        Private to the device.
    """

    source: str
    kernels: tuple[str, ...]
    compile_seconds: float
    is_cached: bool = False
    warnings: tuple[Diagnostic, ...] = ()
    resources: dict[str, KernelResources] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    handle: Any = None


@dataclass
class Image:
    """One buffer as it is laid out in memory, guard bands included.

    Attributes
    ----------
    data : numpy.ndarray
        (size_bytes,) uint8: front guard, payload, back guard. Changed in place by `Device.execute`.
    offset : int
        Where the payload begins, in bytes; the device places `data` so that the payload's address is
        `misalign_bytes` past a 256-byte boundary.
    nbytes : int
        Payload size.
    misalign_bytes : int
        0, or the shift of a deliberately misaligned view.
    """

    data: Bytes
    offset: int
    nbytes: int
    misalign_bytes: int = 0

    @property
    def payload(self) -> Bytes:
        """The payload's bytes, a view."""
        return self.data[self.offset : self.offset + self.nbytes]


@dataclass(frozen=True)
class ExecutionOptions:
    """How a plan is executed once.

    Attributes
    ----------
    timeout_seconds : float
        Wall-clock limit; the device ends the run, or the parent ends the worker.
    thread_order : str
        ``forward``, ``reverse`` or ``random``; only the `cpu` device can choose.
    seed : int
        For ``random``, and for the pattern that dirties shared memory.
    is_fresh_module : bool
        Load the module anew, so that `__device__` variables start from their initialisers.
    dirties_shared : bool
        Fill shared memory with a pattern before the plan runs.
    """

    timeout_seconds: float = 20.0
    thread_order: str = "forward"
    seed: int = 0
    is_fresh_module: bool = False
    dirties_shared: bool = True


@dataclass(frozen=True)
class Fault:
    """A run that did not end well.

    Attributes
    ----------
    kind : str
        ``illegal_address``, ``misaligned_address``, ``trap``, ``timeout``, ``deadlock``, ``launch_failed``,
        ``out_of_memory``, ``invalid_synchronization``, ``stack_overflow``, ``sandbox``, ``worker_died``, ``killed`` (by
        someone else: it says nothing of the candidate).
    message : str
        One sentence for a person.
    kernel : str
        Name expression, when known.
    details : dict
        JSON-able: argument, element index, block, thread, line, address, signal… as far as known.
    """

    kind: str
    message: str
    kernel: str = ""
    details: dict[str, Any] = field(default_factory=dict)


@dataclass
class Execution:
    """The outcome of `Device.execute`; images were changed in place.

    Attributes
    ----------
    elapsed_ms : float
        Device time of the whole plan where measurable, else wall time.
    fault : Fault or None
    printed : str
        What the kernels printed, capped at 64 KiB.
    """

    elapsed_ms: float
    fault: Fault | None = None
    printed: str = ""


class Sampler(ABC):
    """Times one plan over several draws of its inputs; the rules are in docs/guide/measuring.md."""

    @abstractmethod
    def sample(self, count: int) -> list[float]:
        """Take `count` samples and return milliseconds, one fresh draw a sample."""

    @abstractmethod
    def outputs(self) -> list[tuple[int, dict[str, Bytes]]]:
        """Return, for some sampled launches, the draw's index and the result payloads by buffer name."""

    @abstractmethod
    def close(self) -> None:
        """Free everything."""


class Device(ABC):
    """Compiles candidates and runs launch plans."""

    name: ClassVar[str]
    is_emulation: ClassVar[bool] = False
    front_guard_bytes: ClassVar[int] = 4096
    back_guard_bytes: ClassVar[int] = 4096

    @classmethod
    @abstractmethod
    def unavailable_reason(cls) -> str | None:
        """Return None where this device can run here, else one sentence with the next step."""

    @abstractmethod
    def limits(self) -> DeviceLimits:
        """Return what a launch may ask for."""

    @abstractmethod
    def versions(self) -> dict[str, str]:
        """Return versions and facts that go into a record: driver, compiler, name, architecture."""

    @abstractmethod
    def compile(self, source: str, kernels: Sequence[str], *, arch: str | None = None) -> Module:
        """Compile a candidate.

        Parameters
        ----------
        source : str
            The whole `.cu` file.
        kernels : sequence of str
            Name expressions that will be launched.
        arch : str, optional
            Architecture to compile for; default: the device's own.

        Raises
        ------
        llmkernel.errors.CompileError
            With diagnostics.
        llmkernel.errors.UnsupportedFeatureError
            Names the construct and its line.
        """

    @abstractmethod
    def execute(
        self, module: Module, plan: LaunchPlan, images: Mapping[str, Image], options: ExecutionOptions
    ) -> Execution:
        """Run `plan` once over `images` (every buffer of the plan has one) and copy all of them back.

        Faults are returned, not raised; `LaunchError` is raised for limits found before a launch.
        """

    def execute_many(
        self, module: Module, plan: LaunchPlan, runs: Sequence[Mapping[str, Image]], options: ExecutionOptions
    ) -> list[Execution]:
        """Run `plan` once for each mapping in `runs`, in order, over one load of the module.

        `__device__` variables keep their values from run to run, so that state kept between launches shows. Stops
        after the first fault; a device overrides this where one load needs more than calling `execute` again.
        """
        done: list[Execution] = []
        for images in runs:
            done.append(self.execute(module, plan, images, options))
            if done[-1].fault is not None:
                break
        return done

    @abstractmethod
    def sampler(self, module: Module, plan: LaunchPlan, draws: Sequence[Mapping[str, Bytes]]) -> Sampler:
        """Prepare timing of `plan`; each draw maps input and inout buffers to payload bytes."""

    def occupancy(self, module: Module, plan: LaunchPlan) -> dict[str, KernelResources]:
        """Return `module.resources` of the kernels that `plan` launches, with its occupancy where there is one."""
        return {k: module.resources[k] for k in plan.kernels() if k in module.resources}

    def roofline(self, dtypes: Sequence[str]) -> dict[str, Any]:
        """Return measured ceilings: ``bandwidth_bytes_per_s`` and ``operations_per_s`` by dtype; empty when emulated."""
        del dtypes
        return {}

    @abstractmethod
    def caller(self, candidate: Any, domain: Any) -> Callable[..., Any]:
        """Return the callable that an accepted candidate becomes in the notebook's own process.

        Parameters
        ----------
        candidate : llmkernel.candidate.candidate.Candidate
        domain : llmkernel.candidate.domain.VerifiedDomain
            What the candidate was verified for.
        """

    def warm_up(self) -> None:  # noqa: B027 - most devices have nothing to warm
        """Do ahead of the first candidate what it would otherwise wait for."""

    def close(self) -> None:  # noqa: B027 - a device may hold nothing
        """Free everything that the device holds."""


def available_devices() -> dict[str, type[Device]]:
    """Return the device classes by name, `cuda` first."""
    from llmkernel.devices.cpu.device import CpuDevice
    from llmkernel.devices.cuda.device import CudaDevice

    return {"cuda": CudaDevice, "cpu": CpuDevice}
