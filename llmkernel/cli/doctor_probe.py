"""What may crash, hang or take long to import, asked in a process of its own.

Each probe returns JSON data, printed as the last line. A driver that crashes takes only this process with it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any


def driver() -> dict[str, Any]:
    """Return the driver's CUDA version and its GPUs, or the error that it answers with."""
    import ctypes

    name = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
    try:
        library = ctypes.CDLL(name)
    except OSError:
        return {"is_found": False}
    status = library.cuInit(0)
    if status != 0:
        text = ctypes.c_char_p()
        library.cuGetErrorName(status, ctypes.byref(text))
        return {"is_found": True, "error": (text.value or b"").decode() or f"error {status}"}
    version, count = ctypes.c_int(), ctypes.c_int()
    library.cuDriverGetVersion(ctypes.byref(version))
    library.cuDeviceGetCount(ctypes.byref(count))
    gpus = []
    for ordinal in range(count.value):
        device, label = ctypes.c_int(), ctypes.create_string_buffer(256)
        major, minor, size = ctypes.c_int(), ctypes.c_int(), ctypes.c_size_t()
        library.cuDeviceGet(ctypes.byref(device), ordinal)
        library.cuDeviceGetName(label, len(label), device)
        # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR
        library.cuDeviceGetAttribute(ctypes.byref(major), 75, device)
        library.cuDeviceGetAttribute(ctypes.byref(minor), 76, device)
        library.cuDeviceTotalMem_v2(ctypes.byref(size), device)
        gpus.append(
            {
                "name": label.value.decode(errors="replace"),
                "capability": [major.value, minor.value],
                "memory_bytes": size.value,
            }
        )
    return {"is_found": True, "version": [version.value // 1000, version.value % 1000 // 10], "gpus": gpus}


def nvrtc() -> dict[str, Any]:
    """Return NVRTC's version, the architectures that it compiles for, and where the CUDA headers are."""
    from llmkernel.devices.cuda import toolchain

    version = toolchain.nvrtc_version()
    return {
        "version": list(version) if version else None,
        "architectures": list(toolchain.supported_architectures()),
        "headers": [str(path) for path in toolchain.include_directories()],
    }


def cupy() -> dict[str, Any]:
    """Return CuPy's version and the CUDA version that it was built for."""
    import cupy

    number = cupy.cuda.get_local_runtime_version()
    return {"version": cupy.__version__, "cuda": f"{number // 1000}.{number % 1000 // 10}"}


def torch() -> dict[str, Any]:
    """Return PyTorch's version, the CUDA version that it was built for, and whether it sees a GPU."""
    import torch

    return {"version": torch.__version__, "cuda": torch.version.cuda, "sees_gpu": torch.cuda.is_available()}


def devices() -> dict[str, Any]:
    """Return, for each device, why it cannot be used here (None where it can) and its versions."""
    from llmkernel.devices.base import available_devices

    found: dict[str, Any] = {}
    for name, device in available_devices().items():
        reason = device.unavailable_reason()
        found[name] = {"reason": reason}
        if reason is None:
            opened = device()
            try:
                found[name]["versions"] = {k: str(v) for k, v in opened.versions().items()}
            finally:
                opened.close()
    return found


def sandbox() -> dict[str, Any]:
    """Return whether seccomp filters exist here, the version of Landlock (0: none), and why it cannot be used."""
    from llmkernel.sandbox import landlock, seccomp

    return {
        "has_seccomp": seccomp.is_available(),
        "landlock": landlock.version(),
        "why_no_landlock": landlock.why_unsupported(),
    }


def keys() -> dict[str, Any]:
    """Return where each provider's key was found, None where there is none; never a key."""
    from llmkernel.errors import LLMKernelError
    from llmkernel.providers.keys import find_key
    from llmkernel.providers.registry import available_providers, provider_class

    found: dict[str, Any] = {}
    for name in available_providers():
        try:
            variables = getattr(provider_class(name), "key_variables", None)
            if variables is None:
                continue
            key = find_key(name, variables)
            found[name] = {"variables": list(variables), "origin": key.origin if key else None}
        except LLMKernelError as error:
            found[name] = {"error": str(error)}
    return found


PROBES: dict[str, Callable[[], dict[str, Any]]] = {
    probe.__name__: probe for probe in (driver, nvrtc, cupy, torch, devices, sandbox, keys)
}

if __name__ == "__main__":
    try:
        answer: dict[str, Any] = {"found": PROBES[sys.argv[1]]()}
    except Exception as error:  # noqa: BLE001 - whatever a broken installation raises is the finding
        answer = {"error": f"{type(error).__name__}: {error}"[:400]}
    print("\n" + json.dumps(answer))
