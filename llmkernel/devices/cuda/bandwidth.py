"""Measured ceilings of a GPU: copy bandwidth and matrix rates."""

from __future__ import annotations

import functools
import importlib
import statistics
from typing import Any

import numpy as np

from llmkernel.devices.cuda.driver import (
    EVENT_DEFAULT,
    STREAM_NON_BLOCKING,
    Driver,
    primary_context,
    require_driver,
)

_COPY_BYTES = 1 << 30
_REPEATS, _WARM_UPS = 15, 3

# Values of `cudaDataType`, `cublasOperation_t`, `cublasGemmAlgo_t` and `cublasComputeType_t`.
_F16, _BF16, _F32, _F64 = 2, 14, 0, 1
_NO_TRANSPOSE, _TRANSPOSE, _DEFAULT_ALGORITHM = 0, 1, -1
_COMPUTE_F32, _COMPUTE_TF32, _COMPUTE_F64 = 68, 77, 70
# Of each rate: data type, compute type, bytes an element, matrix size.
_RATES = {
    "bfloat16": (_BF16, _COMPUTE_F32, 2, 8192),
    "float16": (_F16, _COMPUTE_F32, 2, 8192),
    "tf32": (_F32, _COMPUTE_TF32, 4, 8192),
    "float32": (_F32, _COMPUTE_F32, 4, 4096),
    "float64": (_F64, _COMPUTE_F64, 8, 4096),
}

MATRIX_DTYPES = tuple(_RATES)


@functools.cache
def copy_bandwidth(ordinal: int = 0) -> float:
    """Return the bandwidth of a device-to-device copy in TB/s, bytes read and written together.

    The median of 15 copies of 1 GiB (less where memory is short); measured once per process.
    """
    driver = require_driver()
    with primary_context(ordinal):
        nbytes = min(_COPY_BYTES, _free_bytes(driver) // 4)
        source, target = driver.allocate(nbytes), driver.allocate(nbytes)
        stream = driver.handle("cuStreamCreate", STREAM_NON_BLOCKING)
        start, stop = (driver.handle("cuEventCreate", EVENT_DEFAULT) for _ in range(2))
        milliseconds = []
        try:
            for _ in range(_WARM_UPS + _REPEATS):
                driver.call("cuEventRecord", start, stream)
                driver.call("cuMemcpyDtoDAsync_v2", target, source, nbytes, stream)
                driver.call("cuEventRecord", stop, stream)
                driver.call("cuEventSynchronize", stop)
                milliseconds.append(driver.elapsed_ms(start, stop))
        finally:
            for event in (start, stop):
                driver.call("cuEventDestroy_v2", event)
            driver.call("cuStreamDestroy_v2", stream)
            driver.call("cuMemFree_v2", source)
            driver.call("cuMemFree_v2", target)
    return 2 * nbytes / statistics.median(milliseconds[_WARM_UPS:]) / 1e9


@functools.cache
def matrix_rate(dtype: str, ordinal: int = 0) -> float | None:
    """Return the rate of a large cuBLAS matrix product in TFLOP/s, on random data; None without cuBLAS.

    Measured once per process.

    Parameters
    ----------
    dtype : str
        ``bfloat16``, ``float16``, ``tf32``, ``float32`` or ``float64``.
    """
    import cupy

    try:
        cublas: Any = importlib.import_module("cupy_backends.cuda.libs.cublas")
    except ImportError:
        return None
    data_type, compute_type, itemsize, size = _RATES[dtype]
    with cupy.cuda.Device(ordinal):
        operands = [_random_matrix(dtype, size) for _ in range(2)]
        product = cupy.empty(size * size * itemsize, cupy.uint8)
        # cuBLAS reads the factors in the type that it computes in.
        scale = np.float64 if dtype == "float64" else np.float32
        factors = [np.array(value, scale) for value in (1.0, 0.0)]
        alpha, beta = (factor.ctypes.data for factor in factors)
        handle = cupy.cuda.device.get_cublas_handle()
        left, right = (operand.data.ptr for operand in operands)

        def multiply() -> None:
            cublas.gemmEx(
                handle,
                _NO_TRANSPOSE,
                _TRANSPOSE,
                size,
                size,
                size,
                alpha,
                left,
                data_type,
                size,
                right,
                data_type,
                size,
                beta,
                product.data.ptr,
                data_type,
                size,
                compute_type,
                _DEFAULT_ALGORITHM,
            )

        milliseconds = []
        start, stop = cupy.cuda.Event(), cupy.cuda.Event()
        for _ in range(_WARM_UPS + _REPEATS):
            start.record()
            multiply()
            stop.record()
            stop.synchronize()
            milliseconds.append(cupy.cuda.get_elapsed_time(start, stop))
    return float(2 * size**3 / statistics.median(milliseconds[_WARM_UPS:]) / 1e9)


def _random_matrix(dtype: str, size: int) -> Any:
    import cupy

    values = cupy.random.default_rng(0).standard_normal(size * size, dtype=cupy.float32)
    if dtype == "bfloat16":
        # The upper half of a float32 is a bfloat16.
        return (values.view(cupy.uint32) >> 16).astype(cupy.uint16)
    return values.astype("float32" if dtype == "tf32" else dtype)


def _free_bytes(driver: Driver) -> int:
    import ctypes

    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    driver.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
    return free.value
