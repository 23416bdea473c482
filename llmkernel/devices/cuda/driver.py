"""The CUDA driver API through ctypes: the few calls that compiling, launching and timing need.

Every name is an exported symbol of `libcuda` and keeps its driver API meaning; symbols that have a newer
version carry its suffix (`cuMemAlloc_v2`), as `cuda.h` maps them.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from ctypes import POINTER, byref, c_char_p, c_float, c_int, c_size_t, c_uint, c_uint64, c_void_p
from typing import Any, Self

from llmkernel.errors import DeviceError

COMPUTE_CAPABILITY = (75, 76)
FUNCTION_SHARED_BYTES, FUNCTION_LOCAL_BYTES, FUNCTION_REGISTERS = 1, 3, 4
FUNCTION_MAX_THREADS, FUNCTION_MAX_DYNAMIC_SHARED_BYTES, FUNCTION_NON_PORTABLE_CLUSTER = 0, 8, 14
LAUNCH_COOPERATIVE, LAUNCH_CLUSTER_DIMENSION = 2, 4

OUT_OF_MEMORY, INVALID_CONTEXT, INVALID_HANDLE, NOT_READY = 2, 201, 400, 600
STREAM_NON_BLOCKING, EVENT_DEFAULT = 1, 0

# Errors after which no call in the context succeeds any more.
CONTEXT_LOST = frozenset({214, 220, 226, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 721, 999})


class LaunchAttribute(ctypes.Structure):
    """`CUlaunchAttribute`: an id, padding to 8 bytes, a 64-byte union."""

    _fields_ = (("id", c_int), ("pad", c_int), ("value", c_uint * 16))


class LaunchConfig(ctypes.Structure):
    """`CUlaunchConfig`."""

    _fields_ = (
        ("grid_x", c_uint),
        ("grid_y", c_uint),
        ("grid_z", c_uint),
        ("block_x", c_uint),
        ("block_y", c_uint),
        ("block_z", c_uint),
        ("shared_bytes", c_uint),
        ("stream", c_void_p),
        ("attributes", POINTER(LaunchAttribute)),
        ("attribute_count", c_uint),
    )


class DriverError(DeviceError):
    """A driver call failed.

    Attributes
    ----------
    code : int
        `CUresult`.
    name : str
        Such as ``CUDA_ERROR_ILLEGAL_ADDRESS``.
    call : str
        The driver function.
    """

    def __init__(self, code: int, name: str, description: str, call: str) -> None:
        super().__init__(
            f"The CUDA driver refused {call}: {description} ({name}).",
            received=f"CUresult {code}",
            next_step="Run `llmkernel doctor`; `nvidia-smi` shows the GPU's health and free memory.",
        )
        self.code = code
        self.name = name
        self.call = call

    @property
    def is_context_lost(self) -> bool:
        """Whether the context is unusable from here on."""
        return self.code in CONTEXT_LOST


_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "cuInit": (c_uint,),
    "cuDriverGetVersion": (POINTER(c_int),),
    "cuDeviceGetCount": (POINTER(c_int),),
    "cuDeviceGet": (POINTER(c_int), c_int),
    "cuDeviceGetName": (c_char_p, c_int, c_int),
    "cuDeviceGetAttribute": (POINTER(c_int), c_int, c_int),
    "cuDeviceGetPCIBusId": (c_char_p, c_int, c_int),
    "cuDeviceTotalMem_v2": (POINTER(c_size_t), c_int),
    "cuDevicePrimaryCtxRetain": (POINTER(c_void_p), c_int),
    "cuDevicePrimaryCtxRelease_v2": (c_int,),
    "cuCtxGetCurrent": (POINTER(c_void_p),),
    "cuCtxSetCurrent": (c_void_p,),
    "cuCtxPushCurrent_v2": (c_void_p,),
    "cuCtxPopCurrent_v2": (POINTER(c_void_p),),
    "cuCtxSynchronize": (),
    "cuCtxResetPersistingL2Cache": (),
    "cuModuleLoadData": (POINTER(c_void_p), c_char_p),
    "cuModuleUnload": (c_void_p,),
    "cuModuleGetFunction": (POINTER(c_void_p), c_void_p, c_char_p),
    "cuFuncGetAttribute": (POINTER(c_int), c_int, c_void_p),
    "cuFuncSetAttribute": (c_void_p, c_int, c_int),
    "cuOccupancyMaxActiveBlocksPerMultiprocessor": (POINTER(c_int), c_void_p, c_int, c_size_t),
    "cuMemAlloc_v2": (POINTER(c_uint64), c_size_t),
    "cuMemFree_v2": (c_uint64,),
    "cuMemGetInfo_v2": (POINTER(c_size_t), POINTER(c_size_t)),
    "cuMemcpyHtoDAsync_v2": (c_uint64, c_void_p, c_size_t, c_void_p),
    "cuMemcpyDtoH_v2": (c_void_p, c_uint64, c_size_t),
    "cuMemcpyDtoHAsync_v2": (c_void_p, c_uint64, c_size_t, c_void_p),
    "cuMemcpyDtoDAsync_v2": (c_uint64, c_uint64, c_size_t, c_void_p),
    "cuMemsetD8Async": (c_uint64, ctypes.c_ubyte, c_size_t, c_void_p),
    "cuStreamCreate": (POINTER(c_void_p), c_uint),
    "cuStreamDestroy_v2": (c_void_p,),
    "cuStreamSynchronize": (c_void_p,),
    "cuStreamQuery": (c_void_p,),
    "cuEventCreate": (POINTER(c_void_p), c_uint),
    "cuEventDestroy_v2": (c_void_p,),
    "cuEventRecord": (c_void_p, c_void_p),
    "cuEventSynchronize": (c_void_p,),
    "cuEventElapsedTime": (POINTER(c_float), c_void_p, c_void_p),
    "cuLaunchKernelEx": (POINTER(LaunchConfig), c_void_p, c_void_p, c_void_p),
}

# Absent from older drivers: looked up on first use, so that everything else works without them.
_OPTIONAL: dict[str, tuple[Any, ...]] = {
    "cuTensorMapEncodeTiled": (
        c_void_p,
        c_int,
        c_uint,
        c_void_p,
        c_void_p,
        c_void_p,
        c_void_p,
        c_void_p,
        c_int,
        c_int,
        c_int,
        c_int,
    ),
    "cuOccupancyMaxPotentialClusterSize": (POINTER(c_int), c_void_p, POINTER(LaunchConfig)),
    "cuProfilerStart": (),
    "cuProfilerStop": (),
}


class Driver:
    """`libcuda`, with errors as exceptions.

    Attributes
    ----------
    raw : dict
        Symbol name to ctypes function that returns a `CUresult` unchecked, for the launch path.
    """

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        # Initialised in one process, CUDA cannot be used in its forks.
        self._process = os.getpid()
        self.raw: dict[str, Any] = {}
        for name, argtypes in _SIGNATURES.items():
            function = getattr(library, name)
            function.argtypes = argtypes
            function.restype = c_int
            self.raw[name] = function
        # Without argument types ctypes converts nothing: for arguments that are ctypes objects already.
        self.launch_kernel: Any = library["cuLaunchKernelEx"]

    @property
    def is_forked(self) -> bool:
        """Whether this process was forked from the one that initialised CUDA, which it therefore cannot use."""
        return os.getpid() != self._process

    def optional(self, name: str) -> Any | None:
        """Return a symbol that older drivers lack, or None."""
        if name not in self.raw:
            try:
                function = getattr(self._library, name)
            except AttributeError:
                return None
            function.argtypes = _OPTIONAL[name]
            function.restype = c_int
            self.raw[name] = function
        return self.raw[name]

    def call(self, name: str, *arguments: Any) -> None:
        """Call one driver function; `DriverError` unless it returns ``CUDA_SUCCESS``."""
        code = self.raw[name](*arguments)
        if code:
            raise self.error(code, name)

    def error(self, code: int, call: str) -> DriverError:
        """Describe a `CUresult`."""
        texts = []
        for symbol in ("cuGetErrorName", "cuGetErrorString"):
            text = c_char_p()
            getattr(self._library, symbol)(c_int(code), byref(text))
            texts.append((text.value or b"unknown error").decode("ascii", "replace"))
        return DriverError(code, texts[0], texts[1], call)

    def version(self) -> tuple[int, int]:
        """Return the newest CUDA version that this driver supports."""
        value = c_int()
        self.call("cuDriverGetVersion", byref(value))
        return value.value // 1000, value.value % 1000 // 10

    def device_count(self) -> int:
        """Return the number of visible GPUs."""
        value = c_int()
        self.call("cuDeviceGetCount", byref(value))
        return value.value

    def attribute(self, attribute: int, ordinal: int) -> int:
        """Return a `CUdevice_attribute` of the device with this ordinal."""
        value = c_int()
        self.call("cuDeviceGetAttribute", byref(value), attribute, ordinal)
        return value.value

    def function_attribute(self, attribute: int, function: int) -> int:
        """Return a `CUfunction_attribute`."""
        value = c_int()
        self.call("cuFuncGetAttribute", byref(value), attribute, function)
        return value.value

    def handle(self, name: str, *arguments: Any) -> int:
        """Call a function whose first parameter receives a handle, and return that handle."""
        value = c_void_p()
        self.call(name, byref(value), *arguments)
        return value.value or 0

    def allocate(self, nbytes: int) -> int:
        """Allocate device memory (at least one byte) and return its address."""
        value = c_uint64()
        self.call("cuMemAlloc_v2", byref(value), max(nbytes, 1))
        return value.value

    def elapsed_ms(self, start: int, stop: int) -> float:
        """Return the milliseconds between two recorded events."""
        value = c_float()
        self.call("cuEventElapsedTime", byref(value), start, stop)
        return value.value


@functools.cache
def load_driver() -> Driver | None:
    """Load and initialise `libcuda`; None where there is no usable driver. Creates no context."""
    try:
        library = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
        driver = Driver(library)
    except (OSError, AttributeError):
        return None
    return driver if driver.raw["cuInit"](0) == 0 else None


def require_driver() -> Driver:
    """Return the driver; `DeviceUnavailableError` where there is none."""
    from llmkernel.errors import DeviceUnavailableError

    driver = load_driver()
    if driver is None:
        raise DeviceUnavailableError(
            "There is no NVIDIA driver here.",
            next_step="Install the NVIDIA driver, or use `--device cpu`.",
        )
    return driver


class Context:
    """The primary context of one device, shared with CuPy and PyTorch in this process."""

    def __init__(self, driver: Driver, ordinal: int) -> None:
        self.driver = driver
        self.ordinal = ordinal
        self._device = c_int()
        driver.call("cuDeviceGet", byref(self._device), ordinal)
        self.handle = driver.handle("cuDevicePrimaryCtxRetain", self._device.value)

    def make_current(self) -> None:
        """Make it this thread's current context."""
        self.driver.call("cuCtxSetCurrent", self.handle)

    def __enter__(self) -> Self:
        self.driver.call("cuCtxPushCurrent_v2", self.handle)
        return self

    def __exit__(self, *_: object) -> None:
        self.driver.call("cuCtxPopCurrent_v2", byref(c_void_p()))


@functools.cache
def primary_context(ordinal: int) -> Context:
    """Return the primary context of a device, retained until the process ends."""
    return Context(require_driver(), ordinal)
