"""What a GPU is and what runs on it."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib
from collections.abc import Callable
from importlib import metadata
from typing import Any

from llmkernel.devices.base import DeviceLimits
from llmkernel.devices.cuda import toolchain
from llmkernel.devices.cuda.driver import COMPUTE_CAPABILITY, Driver

# `CUdevice_attribute`.
_MULTIPROCESSORS, _MAX_THREADS_PER_BLOCK, _L2_BYTES = 16, 1, 38
_MAX_BLOCK, _MAX_GRID = (2, 3, 4), (5, 6, 7)
_THREADS_PER_MULTIPROCESSOR, _SHARED_OPT_IN = 39, 97
_COOPERATIVE, _CLUSTERS, _TENSOR_MAPS = 95, 120, 127
# Asked by name: importing CuPy for its version takes a second.
_DISTRIBUTIONS = {
    "cupy": ("cupy-cuda13x", "cupy-cuda12x", "cupy"),
    "cuda-bindings": ("cuda-bindings",),
    "numpy": ("numpy",),
}
# Data-centre GPUs of these generations place clusters of 16 blocks when a kernel opts in; others have 8.
_LARGE_CLUSTER_GENERATIONS = (9, 10)


def compute_capability(driver: Driver, ordinal: int) -> tuple[int, int]:
    """Return (major, minor)."""
    major, minor = (driver.attribute(attribute, ordinal) for attribute in COMPUTE_CAPABILITY)
    return major, minor


def device_name(driver: Driver, ordinal: int) -> str:
    """Return the marketing name."""
    text = ctypes.create_string_buffer(256)
    driver.call("cuDeviceGetName", text, len(text), ordinal)
    return text.value.decode()


def threads_per_multiprocessor(driver: Driver, ordinal: int) -> int:
    """Return how many threads one multiprocessor holds at a time."""
    return driver.attribute(_THREADS_PER_MULTIPROCESSOR, ordinal)


def device_limits(driver: Driver, ordinal: int) -> DeviceLimits:
    """Read the limits of a device. Creates no context."""
    major, minor = compute_capability(driver, ordinal)
    total = ctypes.c_size_t()
    driver.call("cuDeviceTotalMem_v2", ctypes.byref(total), ordinal)

    def get(attribute: int) -> int:
        return driver.attribute(attribute, ordinal)

    def triple(attributes: tuple[int, int, int]) -> tuple[int, int, int]:
        x, y, z = (get(a) for a in attributes)
        return x, y, z

    cluster = 1
    if get(_CLUSTERS):
        cluster = 16 if major in _LARGE_CLUSTER_GENERATIONS else 8
    return DeviceLimits(
        device="cuda",
        name=device_name(driver, ordinal),
        arch=toolchain.architecture_name(major, minor),
        num_sms=get(_MULTIPROCESSORS),
        max_threads_per_block=get(_MAX_THREADS_PER_BLOCK),
        max_block=triple(_MAX_BLOCK),
        max_grid=triple(_MAX_GRID),
        max_shared_bytes=get(_SHARED_OPT_IN),
        max_cluster_size=cluster,
        supports_cooperative=bool(get(_COOPERATIVE)),
        supports_tma=bool(get(_TENSOR_MAPS)),
        memory_bytes=total.value,
        l2_bytes=get(_L2_BYTES),
    )


def versions(driver: Driver, ordinal: int, limits: DeviceLimits) -> dict[str, str]:
    """Return versions and the GPU's state as text, for records and reports."""
    found = {"gpu": limits.name, "arch": limits.arch, "cuda driver": _dotted(driver.version())}
    nvrtc = toolchain.nvrtc_version()
    if nvrtc is not None:
        found["nvrtc"] = _dotted(nvrtc)
    for label, distributions in _DISTRIBUTIONS.items():
        for name in distributions:
            with contextlib.suppress(metadata.PackageNotFoundError):
                found[label] = metadata.version(name)
                break
    return found | gpu_state(driver, ordinal)


def gpu_state(driver: Driver, ordinal: int) -> dict[str, str]:
    """Return driver version, clocks, temperature and power through NVML; empty where it is not installed."""
    handle = _nvml_handle(driver, ordinal)
    if handle is None:
        return {}
    pynvml: Any = importlib.import_module("pynvml")
    state: dict[str, str] = {}
    queries: dict[str, Callable[[], str]] = {
        "driver": lambda: _text(pynvml.nvmlSystemGetDriverVersion()),
        "sm clock": lambda: f"{pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM)} MHz",
        "memory clock": lambda: f"{pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_MEM)} MHz",
        "temperature": lambda: f"{pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU)} °C",
        "power": lambda: f"{pynvml.nvmlDeviceGetPowerUsage(handle) / 1000:.0f} W",
    }
    for label, query in queries.items():
        try:
            state[label] = query()
        except pynvml.NVMLError:
            continue
    return state


@functools.cache
def _nvml_handle(driver: Driver, ordinal: int) -> Any | None:
    try:
        pynvml: Any = importlib.import_module("pynvml")
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
        # NVML counts all GPUs, CUDA the visible ones: only the bus id names the same one to both.
        bus = ctypes.create_string_buffer(32)
        driver.call("cuDeviceGetPCIBusId", bus, len(bus), ordinal)
        return pynvml.nvmlDeviceGetHandleByPciBusId(bus.value)
    except pynvml.NVMLError:
        return None


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def _dotted(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"
